// SPDX-License-Identifier: Apache-2.0
// Lines of real failures, as engines and drivers print them, and the cause that a reader should be told first.
#include "core/diagnosis/log_diagnosis.h"

#include <QtTest>

using namespace headroom;

class LogDiagnosisTest : public QObject {
  Q_OBJECT
 private slots:
  void namesTheCause_data() {
    QTest::addColumn<QString>("log");
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("fix");
    const auto row = [](const char* name, const char* log, const char* kind, const char* fix) {
      QTest::newRow(name) << QString(log) << QString(kind) << QString(fix);
    };
    row("shm", "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\n"
               "Last error:\nError while creating shared memory segment /dev/shm/nccl-Hk2d3F (size 9637888)\n",
        "shm_too_small", "--shm-size");
    row("bus error", "(VllmWorker rank=1 pid=312) Bus error (core dumped)\n", "shm_too_small", "--shm-size");
    row("oom killer", "A worker died or was killed while executing a task by an unexpected system error.\n"
                      "The worker unexpectedly exits with connection error code 2. End of file. Some potential root causes include: "
                      "(1) The process is killed by SIGKILL by OOM killer due to high memory usage.\n",
        "host_out_of_memory", "memory");
    row("803", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda "
               "driver combination\n",
        "driver_mismatch", "driver");
    row("no cache memory", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
                           "initializing the engine.\n",
        "no_cache_memory", "--gpu-memory-utilization");
    row("heads", "ValueError: Total number of attention heads (64) must be divisible by tensor parallel size (6).\n",
        "heads_not_divisible", "TP=2 with PP=3");
    row("context", "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in "
                   "KV cache (57616). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.\n",
        "context_exceeds_cache", "--max-model-len 57616");
    row("context, 0.11", "ValueError: To serve at least one request with the models's max seq len (65536), (2.45 GiB KV cache is needed, "
                         "which is larger than the available KV cache memory (1.90 GiB). Based on the available memory, the estimated "
                         "maximum model length is 50816.\n",
        "context_exceeds_cache", "--max-model-len 50816");
    row("other programs", "ValueError: Free memory on device (20.71/23.65 GiB) on startup is less than desired GPU memory utilization "
                          "(0.9, 21.28 GiB).\n",
        "less_free_than_wanted", "--gpu-memory-utilization 0.87");
    row("world", "ValueError: World size (8) is larger than the number of available GPUs (4) in this node.\n", "too_few_gpus", "TP");
    row("fp8 block", "ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = "
                     "128.\n",
        "not_divisible", "PP");
    row("awq", "ValueError: The input size is not aligned with the quantized weight shape. This can be caused by too large tensor "
               "parallel size.\n",
        "not_divisible", "PP");
    row("vocabulary", "AssertionError: 151552 is not divisible by 6\n", "not_divisible", "PP");
    row("bf16", "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute "
                "capability 7.5. You can use float16 instead\n",
        "no_bfloat16", "float16");
    row("fp8", "ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')\n",
        "no_fp8", "Marlin");
    row("lfs", "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n", "lfs_pointer", "lfs");
    row("gguf bounds", "gguf_init_from_file_impl: tensor 'blk.81.ffn_up.weight' data is not within the file bounds, model is corrupted or "
                       "incomplete\n",
        "truncated_file", "cat");
    row("gguf type", "gguf_init_from_file_impl: tensor 'blk.0.ffn_down_exps.weight' has invalid ggml type 39 (NONE)\n", "gguf_new_type",
        "newer");
    row("gguf magic", "gguf_init_from_file_impl: invalid magic characters: '<!DO', expected 'GGUF'\n", "not_a_gguf", "download");
    row("port", "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n", "port_in_use",
        "--port");
    row("sglang static", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n", "no_cache_memory",
        "--mem-fraction-static");
    row("sglang balance", "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.\n",
        "unbalanced_gpus", "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK");
    row("xid", "NVRM: Xid (PCI:0000:41:00): 79, pid=1234, GPU has fallen off the bus.\n", "hardware_fault", "power");
    row("architecture", "llama_model_load: error loading model: unknown model architecture: 'qwen9'\n", "architecture_unknown", "newer");
  }
  void namesTheCause() {
    QFETCH(QString, log);
    QFETCH(QString, kind);
    QFETCH(QString, fix);
    const LogDiagnosis diagnosis = diagnoseLog(log.toStdString());
    QVERIFY2(!diagnosis.findings.empty(), "nothing found");
    const LogFinding& first = diagnosis.findings.front();
    QCOMPARE(QString::fromStdString(first.kind), kind);
    QVERIFY(!first.why.empty() && !first.title.empty() && !first.fixes.empty() && first.line > 0);
    bool named = false;
    for (const std::string& text : first.fixes) named = named || QString::fromStdString(text).contains(fix);
    QVERIFY2(named, first.fixes.front().c_str());
  }

  // The same words, opposite advice: D13 of the public cases.
  void outOfMemoryIsToldByPhase() {
    const std::string oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.19 GiB\n";
    const auto first = [&](const std::string& before) { return diagnoseLog(before + oom).findings.front(); };
    const LogFinding sizing = first("Load weight end. type=LlamaForCausalLM, mem usage=60.10 GB.\n");
    QCOMPARE(sizing.phase, LogPhase::CacheSizing);
    QVERIFY2(sizing.fixes[1].find("raise the static share") == 0, sizing.fixes[1].c_str());
    const LogFinding serving = first("Load weight end. mem usage=14 GB.\nThe server is fired up and ready to roll!\nPrefill batch. #new-seq: 4\n");
    QCOMPARE(serving.phase, LogPhase::Serving);
    QVERIFY2(serving.fixes[0].find("lower the static share") == 0, serving.fixes[0].c_str());
    QVERIFY2(serving.why.find("2 GiB") != std::string::npos, serving.why.c_str());
    QCOMPARE(first("Loading safetensors checkpoint shards: 20% Completed\n").phase, LogPhase::Loading);
    QCOMPARE(first("Capturing CUDA graph shapes: 3%\n").phase, LogPhase::GraphCapture);
  }

  void theCauseStandsAboveWhatFollowed() {
    const LogDiagnosis diagnosis = diagnoseLog(
        "INFO vLLM API server version 0.11.0\n"
        "ERROR RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)\n"
        "ERROR Error while creating shared memory segment /dev/shm/nccl-1 (size 9637888)\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n");
    QCOMPARE(diagnosis.engine, std::string("vllm"));
    QCOMPARE(diagnosis.findings.size(), size_t(3));
    QCOMPARE(diagnosis.findings[0].kind, std::string("shm_too_small"));
    QCOMPARE(diagnosis.findings[0].line, 3);
    QVERIFY(!diagnosis.unknown);
  }

  void anErrorThatIsNotKnownIsShown() {
    const LogDiagnosis diagnosis = diagnoseLog("all is well\nKeyError: 'layers.81.weird'\nbye\n");
    QVERIFY(diagnosis.findings.empty());
    QVERIFY(diagnosis.unknown.has_value());
    QCOMPARE(diagnosis.unknown->line, 2);
    const LogDiagnosis calm = diagnoseLog("INFO started\nINFO ready\n");
    QVERIFY(calm.findings.empty() && !calm.unknown);
  }

  void hostileInputIsHarmless() {
    std::string log(1 << 20, '\xff');
    log += "\nCUDA out of memory. Tried to allocate \nmax seq len (), kv cache\n is not divisible by \nworld size larger than the number of available gpus";
    log.push_back('\0');
    const LogDiagnosis diagnosis = diagnoseLog(log);
    QVERIFY(!diagnosis.findings.empty());
    QVERIFY(diagnoseLog("").findings.empty());
  }
};

QTEST_GUILESS_MAIN(LogDiagnosisTest)
#include "log_diagnosis_test.moc"
