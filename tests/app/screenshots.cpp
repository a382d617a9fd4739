// SPDX-License-Identifier: GPL-3.0-or-later
// headroom-screenshots MODEL DIR: drives the real window against a real engine and saves every page as PNG, light and dark, English and Chinese.
#include "app/desktop/appearance.h"
#include "core/model/model_catalog.h"
#include "tests/app/desktop_driver.h"
#include "ui/models/wish_model.h"
#include "ui/settings/app_settings.h"
#include "ui/views/diagnosis_dialog.h"
#include "ui/views/wish_dialog.h"

#include <QApplication>
#include <QFile>
#include <QNetworkAccessManager>
#include <QNetworkReply>
#include <QTemporaryDir>
#include <csignal>
#include <cstdio>

using namespace headroom;
using namespace headroom::app;

namespace {

constexpr int kWidth = 1440, kHeight = 900;
constexpr int kStartTimeoutMs = 120000;

struct Look {
  const char* name;
  ui::ThemeChoice theme;
  const char* language;
};
constexpr Look kLooks[] = {{"light-en", ui::ThemeChoice::Light, "en"},
                           {"dark-en", ui::ThemeChoice::Dark, "en"},
                           {"light-zh", ui::ThemeChoice::Light, "zh_CN"},
                           {"dark-zh", ui::ThemeChoice::Dark, "zh_CN"}};

class Camera {
 public:
  Camera(MainWindow& window, ui::AppSettings& settings, QString folder) : m_window(window), m_settings(settings), m_folder(std::move(folder)) {}

  // The whole window, or one of its dialogs.
  void shootAllLooks(const QString& page, QWidget* dialog = nullptr) {
    for (const Look& look : kLooks) {
      m_settings.setTheme(look.theme);
      m_settings.setLanguage(QString::fromLatin1(look.language));
      QTest::qWait(1000);
      shoot(page, QString::fromLatin1(look.name), dialog);
    }
    m_settings.setTheme(ui::ThemeChoice::Light);
    m_settings.setLanguage(QStringLiteral("en"));
  }

  // The window as it stands, at once: for what lasts only a moment.
  void shoot(const QString& page, const QString& look, QWidget* dialog = nullptr) {
    const QString file = QStringLiteral("%1/%2-%3.png").arg(m_folder, page, look);
    if (!(dialog ? dialog : static_cast<QWidget*>(&m_window))->grab().save(file)) {
      std::fprintf(stderr, "headroom-screenshots: %s: cannot be written\n", qPrintable(file));
      std::exit(3);
    }
    std::printf("%s\n", qPrintable(file));
  }

 private:
  MainWindow& m_window;
  ui::AppSettings& m_settings;
  QString m_folder;
};

void require(bool condition, const QString& what) {
  if (condition) return;
  std::fprintf(stderr, "headroom-screenshots: %s\n", qPrintable(what));
  std::exit(3);
}

// Keeps several requests going, so that the charts show a load.
class Load : public QObject {
 public:
  Load(QUrl url, int requests) : m_url(std::move(url)) {
    for (int i = 0; i < requests; ++i) next();
  }

 private:
  void next() {
    static const char* const kOpenings[] = {"Once upon a time", "The history of computing begins", "A good recipe for bread needs", "On a clear night you can see"};
    QNetworkRequest request(m_url.resolved(QUrl(QStringLiteral("/v1/completions"))));
    request.setHeader(QNetworkRequest::ContentTypeHeader, QStringLiteral("application/json"));
    const QByteArray body = QByteArray(R"({"prompt": ")") + kOpenings[m_count++ % 4] + R"(", "max_tokens": 48, "temperature": 0.8, "ignore_eos": true})";
    QNetworkReply* reply = m_network.post(request, body);
    connect(reply, &QNetworkReply::finished, this, [this, reply] {
      const bool goes = reply->error() == QNetworkReply::NoError;
      reply->deleteLater();
      if (goes) next();
    });
  }
  QUrl m_url;
  QNetworkAccessManager m_network;
  int m_count = 0;
};

}  // namespace

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: headroom-screenshots MODEL DIR\n");
    return 2;
  }
  QCoreApplication::setApplicationName(QStringLiteral("headroom"));
  const QString model = QString::fromLocal8Bit(argv[1]), folder = QString::fromLocal8Bit(argv[2]);
  require(QDir().mkpath(folder), folder + QStringLiteral(": cannot be made"));
  QTemporaryDir own;
  ui::AppSettings settings(own.path());
  settings.setLanguage(QStringLiteral("en"));
  settings.setTheme(ui::ThemeChoice::Light);
  const Appearance appearance(application, settings);
  MainWindow window(settings);
  DesktopDriver person(window);
  Camera camera(window, settings, folder);
  window.resize(kWidth, kHeight);
  window.show();

  // The story: vLLM refuses TP=6 for 64 query heads; Headroom can run it unevenly.
  require(person.openModel(QStringLiteral("Qwen/Qwen2.5-72B-Instruct"), QStringLiteral("72B")), QStringLiteral("the catalog's Qwen2.5-72B does not open"));
  require(person.useMachine(QStringLiteral("6xA800-80GB")), QStringLiteral("6xA800-80GB is not planned"));
  require(person.useEngine(EngineKind::Vllm), QStringLiteral("vLLM is not planned"));
  window.planPage().selectLayout(6, 1, 1);
  camera.shootAllLooks(QStringLiteral("plan-refused"));
  window.planPage().selectLayout(2, 3, 1);
  camera.shootAllLooks(QStringLiteral("plan-vllm"));
  window.planPage().showTab(ui::PlanPage::ContextTab);
  camera.shootAllLooks(QStringLiteral("plan-context"));
  window.planPage().showTab(ui::PlanPage::EnginesTab);
  require(person.waitFor([&] { return !person.plan().engineAnswers().empty(); }), QStringLiteral("the engines are not compared"));
  camera.shootAllLooks(QStringLiteral("plan-engines"));
  window.planPage().showTab(ui::PlanPage::GridTab);
  // Which GPUs it needs, and why a start failed.
  window.planPage().openWish();
  auto* wish = window.findChild<ui::WishDialog*>();
  require(wish != nullptr, QStringLiteral("the search for GPUs does not open"));
  require(person.waitFor([&] { return wish->model().rowCount() == static_cast<int>(gpuCatalog().size()); }), QStringLiteral("the search for GPUs does not end"));
  camera.shootAllLooks(QStringLiteral("wish"), wish);
  wish->close();
  {
    QFile log(own.filePath(QStringLiteral("engine.log")));
    require(log.open(QIODevice::WriteOnly), log.fileName() + QStringLiteral(": cannot be written"));
    log.write("INFO vLLM API server version 0.21.0\n"
              "ValueError: Total number of attention heads (64) must be divisible by tensor parallel size (6).\n");
  }
  window.planPage().selectLayout(6, 1, 1);
  window.planPage().take(own.filePath(QStringLiteral("engine.log")));
  require(person.waitFor([&] { return window.findChild<ui::DiagnosisDialog*>() != nullptr; }), QStringLiteral("the log is not explained"));
  auto* diagnosis = window.findChild<ui::DiagnosisDialog*>();
  camera.shootAllLooks(QStringLiteral("diagnosis"), diagnosis);
  diagnosis->close();
  // A large mixture of experts on two nodes, whole experts on each GPU.
  require(person.openModel(QStringLiteral("deepseek-ai/DeepSeek-R1"), QStringLiteral("R1")), QStringLiteral("the catalog's DeepSeek-R1 does not open"));
  require(person.useMachine(QStringLiteral("2n8xH200-141GB")), QStringLiteral("2n8xH200-141GB is not planned"));
  camera.shootAllLooks(QStringLiteral("plan-nodes"));
  require(person.openModel(QStringLiteral("Qwen/Qwen2.5-72B-Instruct"), QStringLiteral("72B")), QStringLiteral("the catalog's Qwen2.5-72B does not open"));
  require(person.useMachine(QStringLiteral("6xA800-80GB")), QStringLiteral("6xA800-80GB is not planned"));
  require(person.useEngine(EngineKind::Headroom), QStringLiteral("Headroom is not planned"));
  window.planPage().selectLayout(6, 1, 1);
  camera.shootAllLooks(QStringLiteral("plan-uneven"));

  // A real engine on this machine's host devices.
  require(person.openModel(model, QString()), QStringLiteral("the model does not open"));
  require(person.useThisMachine(), QStringLiteral("this machine is not planned"));
  window.planPage().selectLayout(3, 2, 1);
  camera.shootAllLooks(QStringLiteral("plan"));
  window.showPage(MainWindow::Monitor);
  // The moment of loading is caught when a first rank has read half of its weights.
  bool caught = false;
  const auto watch = QObject::connect(&person.engine(), &ui::EngineSession::stateUpdated, &window, [&](const EngineState& state) {
    for (const RankState& rank : state.ranks) {
      if (caught || state.phase != EnginePhase::Loading || rank.loadBytesDone * 2 < rank.loadBytesTotal || rank.loadBytesTotal == 0) continue;
      caught = true;
      camera.shoot(QStringLiteral("loading"), QStringLiteral("light-en"));
    }
  });
  window.startSelected();
  require(person.waitFor([&] { return person.engine().isReady() || person.engine().phase() == ui::SessionPhase::Failed; }, kStartTimeoutMs) &&
              person.engine().isReady(),
          QStringLiteral("the engine did not start: ") + person.engine().failureReason());
  QObject::disconnect(watch);
  if (!caught) std::fprintf(stderr, "headroom-screenshots: the weights were there too fast for a picture of loading\n");
  window.showPage(MainWindow::Chat);
  person.ask(QStringLiteral("What is the capital of France? Answer in one sentence."));
  person.ask(QStringLiteral("Write one sentence about the sea."));
  camera.shootAllLooks(QStringLiteral("chat"));
  window.showPage(MainWindow::Monitor);
  window.monitorPage().setWindowSeconds(60);
  {
    Load load(person.engine().url(), 6);
    QTest::qWait(20000);
    camera.shootAllLooks(QStringLiteral("monitor"));
  }
  window.showPage(MainWindow::Log);
  camera.shootAllLooks(QStringLiteral("log"));
  window.showPage(MainWindow::Monitor);
  ::kill(static_cast<pid_t>(person.engine().processId()), SIGKILL);
  require(person.waitFor([&] { return person.engine().phase() == ui::SessionPhase::Failed; }), QStringLiteral("a killed engine was not noticed"));
  camera.shootAllLooks(QStringLiteral("killed"));
  return 0;
}
