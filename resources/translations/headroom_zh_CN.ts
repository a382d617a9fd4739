<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>Headroom</name>
    <message>
        <source>Fits</source>
        <translation>放得下</translation>
    </message>
    <message>
        <source>Tight</source>
        <translation>紧张</translation>
    </message>
    <message>
        <source>Does not fit</source>
        <translation>放不下</translation>
    </message>
    <message>
        <source>Not possible</source>
        <translation>不可行</translation>
    </message>
    <message>
        <source>%1 KV heads / %2</source>
        <translation>%1 个 KV 头 / %2</translation>
    </message>
    <message>
        <source>%1 heads / %2</source>
        <translation>%1 个头 / %2</translation>
    </message>
    <message>
        <source>%1 layers / %2</source>
        <translation>%1 层 / %2</translation>
    </message>
    <message>
        <source>%1 columns / %2</source>
        <translation>%1 列 / %2</translation>
    </message>
    <message>
        <source>%1 tokens / %2</source>
        <translation>%1 词元 / %2</translation>
    </message>
    <message>
        <source>experts / %1</source>
        <translation>专家 / %1</translation>
    </message>
    <message>
        <source>FP8 blocks / %1</source>
        <translation>FP8 块 / %1</translation>
    </message>
    <message>
        <source>quantization</source>
        <translation>量化</translation>
    </message>
    <message>
        <source>model unsupported</source>
        <translation>不支持该模型</translation>
    </message>
    <message>
        <source>dtype unsupported</source>
        <translation>不支持该类型</translation>
    </message>
    <message>
        <source>no pipeline</source>
        <translation>不支持流水线</translation>
    </message>
    <message>
        <source>%1 on the fullest GPU</source>
        <translation>占用最多的 GPU：%1</translation>
    </message>
    <message>
        <source>room for %1 tokens</source>
        <translation>可容纳 %1 个词元</translation>
    </message>
    <message>
        <source>recommended</source>
        <translation>推荐</translation>
    </message>
    <message>
        <source>exact</source>
        <translation>精确</translation>
    </message>
    <message>
        <source>modelled</source>
        <translation>模型估算</translation>
    </message>
    <message>
        <source>measured here</source>
        <translation>本机实测</translation>
    </message>
    <message>
        <source>%1 parameters</source>
        <translation>%1 参数</translation>
    </message>
    <message>
        <source>%1 heads, %2 KV heads</source>
        <translation>%1 个头，%2 个 KV 头</translation>
    </message>
    <message>
        <source>%1 in %2</source>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>counted from the files</source>
        <translation>按文件统计</translation>
    </message>
    <message>
        <source>counted from the GGUF file</source>
        <translation>按 GGUF 文件统计</translation>
    </message>
    <message>
        <source>by the configuration, no weights</source>
        <translation>按配置推算，无权重</translation>
    </message>
    <message>
        <source>from the catalog, no weights</source>
        <translation>来自目录，无权重</translation>
    </message>
    <message>
        <source>replica %1</source>
        <translation>副本 %1</translation>
    </message>
    <message>
        <source>stage %1</source>
        <translation>阶段 %1</translation>
    </message>
    <message>
        <source>layers %1–%2</source>
        <translation>第 %1–%2 层</translation>
    </message>
    <message>
        <source>GPU %1</source>
        <translation>GPU %1</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>Activations</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>Graphs</source>
        <translation>CUDA 图</translation>
    </message>
    <message>
        <source>Runtime</source>
        <translation>运行时</translation>
    </message>
    <message>
        <source>Other processes</source>
        <translation>其他进程</translation>
    </message>
    <message>
        <source>Open a model to plan and start it.</source>
        <translation>请先打开模型，再规划和启动。</translation>
    </message>
    <message>
        <source>The plan is not ready yet.</source>
        <translation>规划尚未完成。</translation>
    </message>
    <message>
        <source>Select a layout in the grid.</source>
        <translation>请在网格中选择一种布局。</translation>
    </message>
    <message>
        <source>These GPUs are a what-if; choose this machine to start the layout here.</source>
        <translation>这些 GPU 是假设的；要在此启动，请选择“本机”。</translation>
    </message>
    <message>
        <source>This plan is for %1; choose the Headroom engine, or copy the command.</source>
        <translation>此规划针对 %1；请选择 Headroom 引擎，或复制命令。</translation>
    </message>
    <message>
        <source>This model has no weights here, only its configuration; open a folder or file with weights.</source>
        <translation>此处只有模型配置而没有权重；请打开含权重的文件夹或文件。</translation>
    </message>
    <message>
        <source>The engine cannot run this model yet: it lacks %1.</source>
        <translation>引擎暂时无法运行此模型：缺少 %1。</translation>
    </message>
    <message>
        <source>%1 MiB</source>
        <translation>%1 MiB</translation>
    </message>
    <message>
        <source>%1 GiB</source>
        <translation>%1 GiB</translation>
    </message>
    <message>
        <source>%1k</source>
        <comment>thousands</comment>
        <translation>%1k</translation>
    </message>
    <message>
        <source>%1M</source>
        <comment>millions</comment>
        <translation>%1M</translation>
    </message>
    <message>
        <source>%1 B</source>
        <comment>billions</comment>
        <translation>%1 B</translation>
    </message>
    <message>
        <source>%1 M</source>
        <comment>millions</comment>
        <translation>%1 M</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>%1 missing</source>
        <translation>缺 %1</translation>
    </message>
    <message>
        <source>%1 free</source>
        <translation>余 %1</translation>
    </message>
    <message numerus="yes">
        <source>%n layer(s)</source>
        <translation>
            <numerusform>%n 层</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n head(s)</source>
        <translation>
            <numerusform>%n 个头</numerusform>
        </translation>
    </message>
    <message>
        <source>Left to others</source>
        <translation>留给其他程序</translation>
    </message>
    <message>
        <source>KV cache, needed</source>
        <translation>KV 缓存（所需）</translation>
    </message>
    <message>
        <source>KV cache, spare</source>
        <translation>KV 缓存（富余）</translation>
    </message>
    <message>
        <source>TP rank %1</source>
        <translation>TP rank %1</translation>
    </message>
</context>
<context>
    <name>headroom::app::MainWindow</name>
    <message>
        <source>&amp;File</source>
        <translation>文件(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Open file…</source>
        <translation>打开文件(&amp;O)…</translation>
    </message>
    <message>
        <source>Open a config.json or a GGUF file</source>
        <translation>打开 config.json 或 GGUF 文件</translation>
    </message>
    <message>
        <source>Open fol&amp;der…</source>
        <translation>打开文件夹(&amp;D)…</translation>
    </message>
    <message>
        <source>Open a model&apos;s folder</source>
        <translation>打开模型文件夹</translation>
    </message>
    <message>
        <source>Model &amp;catalog…</source>
        <translation>模型目录(&amp;C)…</translation>
    </message>
    <message>
        <source>Choose a model by name</source>
        <translation>按名称选择模型</translation>
    </message>
    <message>
        <source>Open &amp;recent</source>
        <translation>最近打开(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Settings…</source>
        <translation>设置(&amp;S)…</translation>
    </message>
    <message>
        <source>Language, theme and host devices</source>
        <translation>语言、主题和主机设备</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>退出(&amp;Q)</translation>
    </message>
    <message>
        <source>Close the window</source>
        <translation>关闭窗口</translation>
    </message>
    <message>
        <source>&amp;Engine</source>
        <translation>引擎(&amp;E)</translation>
    </message>
    <message>
        <source>&amp;Refresh the plan</source>
        <translation>刷新规划(&amp;R)</translation>
    </message>
    <message>
        <source>Read the model again and plan again</source>
        <translation>重新读取模型并规划</translation>
    </message>
    <message>
        <source>&amp;Start</source>
        <translation>启动(&amp;S)</translation>
    </message>
    <message>
        <source>Start the selected layout</source>
        <translation>启动选中的布局</translation>
    </message>
    <message>
        <source>S&amp;top</source>
        <translation>停止(&amp;T)</translation>
    </message>
    <message>
        <source>Stop the engine</source>
        <translation>停止引擎</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>视图(&amp;V)</translation>
    </message>
    <message>
        <source>&amp;Plan</source>
        <translation>规划(&amp;P)</translation>
    </message>
    <message>
        <source>Layouts of the model on these GPUs</source>
        <translation>模型在这些 GPU 上的布局</translation>
    </message>
    <message>
        <source>&amp;Monitor</source>
        <translation>监控(&amp;M)</translation>
    </message>
    <message>
        <source>The running engine in figures and charts</source>
        <translation>运行中引擎的数据和图表</translation>
    </message>
    <message>
        <source>&amp;Chat</source>
        <translation>对话(&amp;C)</translation>
    </message>
    <message>
        <source>Try the model that is served</source>
        <translation>试用正在服务的模型</translation>
    </message>
    <message>
        <source>&amp;Log</source>
        <translation>日志(&amp;L)</translation>
    </message>
    <message>
        <source>What the engine wrote</source>
        <translation>引擎输出的内容</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>帮助(&amp;H)</translation>
    </message>
    <message>
        <source>&amp;About Headroom</source>
        <translation>关于 Headroom(&amp;A)</translation>
    </message>
    <message>
        <source>Version and licence</source>
        <translation>版本和许可</translation>
    </message>
    <message>
        <source>%1 as %2</source>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>No engine is running.</source>
        <translation>没有引擎在运行。</translation>
    </message>
    <message>
        <source>Loading %1 …</source>
        <translation>正在加载 %1 …</translation>
    </message>
    <message>
        <source>Serving %1 at %2</source>
        <translation>%1 正在服务：%2</translation>
    </message>
    <message>
        <source>Stopping %1 …</source>
        <translation>正在停止 %1 …</translation>
    </message>
    <message>
        <source>The engine ended: %1</source>
        <translation>引擎已结束：%1</translation>
    </message>
    <message>
        <source>Stop the engine?</source>
        <translation>停止引擎？</translation>
    </message>
    <message>
        <source>The engine is running. Closing the window stops it.</source>
        <translation>引擎正在运行。关闭窗口会停止它。</translation>
    </message>
    <message>
        <source>&amp;Stop and quit</source>
        <translation>停止并退出(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Keep it running</source>
        <translation>继续运行(&amp;K)</translation>
    </message>
    <message>
        <source>About Headroom</source>
        <translation>关于 Headroom</translation>
    </message>
    <message>
        <source>Headroom %1</source>
        <translation>Headroom %1</translation>
    </message>
    <message>
        <source>A workbench to plan, start and watch language models on your own GPUs.
The window is licensed under GPL-3.0-or-later, the engine under Apache-2.0.</source>
        <translation>在自己的 GPU 上规划、启动和监控语言模型的工作台。
窗口程序采用 GPL-3.0-or-later 许可，引擎采用 Apache-2.0 许可。</translation>
    </message>
    <message>
        <source>%1 (%2)</source>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>Pages</source>
        <translation>页面</translation>
    </message>
</context>
<context>
    <name>headroom::app::WorkspaceState</name>
    <message>
        <source>An engine is running; stop it first.</source>
        <translation>已有引擎在运行；请先停止它。</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%2 的 %1</translation>
    </message>
</context>
<context>
    <name>headroom::ui::CatalogDialog</name>
    <message numerus="yes">
        <source>%n model(s)</source>
        <translation>
            <numerusform>%n 个模型</numerusform>
        </translation>
    </message>
    <message>
        <source>Model catalog</source>
        <translation>模型目录</translation>
    </message>
    <message>
        <source>Search by name</source>
        <translation>按名称搜索</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
</context>
<context>
    <name>headroom::ui::CatalogTableModel</name>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Layers</source>
        <translation>层数</translation>
    </message>
    <message>
        <source>Heads</source>
        <translation>头数</translation>
    </message>
    <message>
        <source>KV heads</source>
        <translation>KV 头数</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>许可</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ChartAxis</name>
    <message>
        <source>%1 GiB</source>
        <translation>%1 GiB</translation>
    </message>
    <message>
        <source>%1 MiB</source>
        <translation>%1 MiB</translation>
    </message>
    <message>
        <source>%1 KiB</source>
        <translation>%1 KiB</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 毫秒</translation>
    </message>
    <message>
        <source>now</source>
        <translation>现在</translation>
    </message>
    <message>
        <source>−%1 min</source>
        <translation>−%1 分</translation>
    </message>
    <message>
        <source>−%1 s</source>
        <translation>−%1 秒</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ChartContent</name>
    <message>
        <source>bytes</source>
        <translation>字节</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>词元/秒</translation>
    </message>
    <message>
        <source>ms</source>
        <translation>毫秒</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>%1 tok/s</source>
        <translation>%1 词元/秒</translation>
    </message>
    <message>
        <source>%1 ms</source>
        <translation>%1 毫秒</translation>
    </message>
    <message>
        <source>%1 s</source>
        <translation>%1 秒</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ChartTableDialog</name>
    <message>
        <source>&amp;Copy as CSV</source>
        <translation>复制为 CSV(&amp;C)</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ChatMessageView</name>
    <message>
        <source>You</source>
        <translation>你</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>(no text)</source>
        <translation>（无文本）</translation>
    </message>
    <message>
        <source>Error: %1</source>
        <translation>错误：%1</translation>
    </message>
    <message>
        <source>Your message</source>
        <translation>你的消息</translation>
    </message>
    <message>
        <source>Answer of the model</source>
        <translation>模型的回答</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ChatModel</name>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>cut at the token limit</source>
        <translation>达到词元上限而截断</translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n 个词元</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 tok/s</source>
        <translation>%1 词元/秒</translation>
    </message>
    <message>
        <source>first token after %1 ms</source>
        <translation>首词元 %1 毫秒</translation>
    </message>
    <message>
        <source>You: %1</source>
        <translation>你：%1</translation>
    </message>
    <message>
        <source>Model: %1</source>
        <translation>模型：%1</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ChatPage</name>
    <message>
        <source>S&amp;ystem prompt</source>
        <translation>系统提示(&amp;Y)</translation>
    </message>
    <message>
        <source>None: the model&apos;s own default</source>
        <translation>无：使用模型自带的默认值</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系统提示</translation>
    </message>
    <message>
        <source>Te&amp;mperature</source>
        <translation>温度(&amp;M)</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>0 always takes the likeliest token; higher values vary more</source>
        <translation>0 总是取最可能的词元；数值越高变化越多</translation>
    </message>
    <message>
        <source>Ma&amp;x. tokens</source>
        <translation>最多词元(&amp;X)</translation>
    </message>
    <message>
        <source>Most tokens of an answer</source>
        <translation>一次回答的最多词元数</translation>
    </message>
    <message>
        <source>C&amp;lear</source>
        <translation>清空(&amp;L)</translation>
    </message>
    <message>
        <source>Forget the conversation</source>
        <translation>清除对话</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Ask the model something. Each answer shows its tokens, its speed and its time to first token.</source>
        <translation>向模型提问。每个回答都会显示词元数、速度和首词元时间。</translation>
    </message>
    <message>
        <source>Message (Enter sends, Shift+Enter starts a new line)</source>
        <translation>消息（Enter 发送，Shift+Enter 换行）</translation>
    </message>
    <message>
        <source>Message to the model</source>
        <translation>发给模型的消息</translation>
    </message>
    <message>
        <source>Se&amp;nd</source>
        <translation>发送(&amp;N)</translation>
    </message>
    <message>
        <source>St&amp;op answer</source>
        <translation>停止回答(&amp;O)</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ChatStream</name>
    <message>
        <source>The engine sent an event without end.</source>
        <translation>引擎发来的事件没有结尾。</translation>
    </message>
    <message>
        <source>The engine sent something that is not JSON: %1</source>
        <translation>引擎发来的内容不是 JSON：%1</translation>
    </message>
    <message>
        <source>The engine answered with HTTP status %1.</source>
        <translation>引擎返回 HTTP 状态 %1。</translation>
    </message>
    <message>
        <source>The connection was lost before the answer was complete.</source>
        <translation>回答尚未完成，连接已中断。</translation>
    </message>
    <message>
        <source>The engine cannot be reached: %1</source>
        <translation>无法连接引擎：%1</translation>
    </message>
    <message>
        <source>The engine closed the connection before the answer was complete.</source>
        <translation>回答尚未完成，引擎已关闭连接。</translation>
    </message>
</context>
<context>
    <name>headroom::ui::DetailsPanel</name>
    <message>
        <source>No layout selected</source>
        <translation>未选择布局</translation>
    </message>
    <message>
        <source>Recommended: %1</source>
        <translation>推荐理由：%1</translation>
    </message>
    <message>
        <source>What to do:</source>
        <translation>建议：</translation>
    </message>
    <message>
        <source>Notes</source>
        <translation>说明</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>KV cache of a replica</source>
        <translation>每个副本的 KV 缓存</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>词元</translation>
    </message>
    <message>
        <source>Requests of %1 tokens at once</source>
        <translation>可同时处理的 %1 词元请求</translation>
    </message>
    <message>
        <source>Decode, one request</source>
        <translation>解码，单个请求</translation>
    </message>
    <message>
        <source>tokens/s</source>
        <translation>词元/秒</translation>
    </message>
    <message numerus="yes">
        <source>Decode, %n request(s)</source>
        <translation>
            <numerusform>解码，%n 个请求</numerusform>
        </translation>
    </message>
    <message>
        <source>Time between tokens</source>
        <translation>词元间隔</translation>
    </message>
    <message>
        <source>ms</source>
        <translation>毫秒</translation>
    </message>
    <message>
        <source>Prefill</source>
        <translation>预填充</translation>
    </message>
    <message>
        <source>Time to first token, prompt of %1</source>
        <translation>首词元时间，提示 %1 词元</translation>
    </message>
    <message>
        <source>Speed: unknown</source>
        <translation>速度：未知</translation>
    </message>
    <message>
        <source>Weights: %1. Other memory: %2.</source>
        <translation>权重：%1。其他内存：%2。</translation>
    </message>
    <message>
        <source>Start this layout</source>
        <translation>启动此布局</translation>
    </message>
    <message>
        <source>Memory per GPU</source>
        <translation>每个 GPU 的内存</translation>
    </message>
    <message>
        <source>Show memory as a table</source>
        <translation>以表格显示内存</translation>
    </message>
    <message>
        <source>Memory of each GPU</source>
        <translation>每个 GPU 的内存</translation>
    </message>
    <message>
        <source>Capacity and speed</source>
        <translation>容量与速度</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Command that starts this layout</source>
        <translation>启动此布局的命令</translation>
    </message>
    <message>
        <source>Copy the command</source>
        <translation>复制命令</translation>
    </message>
    <message>
        <source>Time to first token</source>
        <translation>首词元时间</translation>
    </message>
</context>
<context>
    <name>headroom::ui::EngineCharts</name>
    <message>
        <source>Weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>Activations</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>Other</source>
        <translation>其他</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>规划</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Prompt, right scale</source>
        <translation>提示（右轴）</translation>
    </message>
    <message>
        <source>Generated</source>
        <translation>生成</translation>
    </message>
    <message>
        <source>Predicted, generated</source>
        <translation>预测（生成）</translation>
    </message>
    <message>
        <source>Predicted, prompt</source>
        <translation>预测（提示）</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>p50</source>
        <translation>p50</translation>
    </message>
    <message>
        <source>p95</source>
        <translation>p95</translation>
    </message>
    <message>
        <source>Predicted</source>
        <translation>预测</translation>
    </message>
</context>
<context>
    <name>headroom::ui::EngineClient</name>
    <message>
        <source>The engine has been silent for too long.</source>
        <translation>引擎长时间没有响应。</translation>
    </message>
    <message>
        <source>The engine&apos;s state is not JSON: %1</source>
        <translation>引擎状态不是 JSON：%1</translation>
    </message>
    <message>
        <source>The engine&apos;s list of models cannot be read.</source>
        <translation>无法读取引擎的模型列表。</translation>
    </message>
    <message>
        <source>The engine answered with HTTP status %1.</source>
        <translation>引擎返回 HTTP 状态 %1。</translation>
    </message>
    <message>
        <source>The engine closed its event stream.</source>
        <translation>引擎关闭了事件流。</translation>
    </message>
    <message>
        <source>The engine sent an event without end.</source>
        <translation>引擎发来的事件没有结尾。</translation>
    </message>
    <message>
        <source>An event of the engine is not JSON: %1</source>
        <translation>引擎的某个事件不是 JSON：%1</translation>
    </message>
</context>
<context>
    <name>headroom::ui::EngineProcess</name>
    <message>
        <source>headroom-engine was found neither beside this program nor in PATH</source>
        <translation>在本程序旁和 PATH 中都找不到 headroom-engine</translation>
    </message>
</context>
<context>
    <name>headroom::ui::EngineSession</name>
    <message>
        <source>%1 The engine reported: %2</source>
        <translation>%1 引擎报告：%2</translation>
    </message>
</context>
<context>
    <name>headroom::ui::EngineText</name>
    <message>
        <source>No engine is running</source>
        <translation>没有引擎在运行</translation>
    </message>
    <message>
        <source>Starting</source>
        <translation>正在启动</translation>
    </message>
    <message>
        <source>Loading weights</source>
        <translation>正在加载权重</translation>
    </message>
    <message>
        <source>Serving</source>
        <translation>服务中</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>正在停止</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>No engine is running. Choose a layout and start it; then the model can be asked here.</source>
        <translation>没有引擎在运行。选择布局并启动后，即可在此提问。</translation>
    </message>
    <message>
        <source>The engine is starting.</source>
        <translation>引擎正在启动。</translation>
    </message>
    <message>
        <source>The engine is loading its weights.</source>
        <translation>引擎正在加载权重。</translation>
    </message>
    <message>
        <source>The engine is stopping.</source>
        <translation>引擎正在停止。</translation>
    </message>
</context>
<context>
    <name>headroom::ui::GridLegend</name>
    <message>
        <source>Legend</source>
        <translation>图例</translation>
    </message>
    <message>
        <source>Blue: memory is left. Neutral: tight. Orange: memory is missing. Hatched: the engine refuses the layout. Star: recommended.</source>
        <translation>蓝色：有剩余内存。中性色：紧张。橙色：内存不足。斜线：引擎拒绝该布局。星号：推荐。</translation>
    </message>
    <message>
        <source>fits</source>
        <translation>放得下</translation>
    </message>
    <message>
        <source>tight</source>
        <translation>紧张</translation>
    </message>
    <message>
        <source>does not fit</source>
        <translation>放不下</translation>
    </message>
    <message>
        <source>not possible</source>
        <translation>不可行</translation>
    </message>
    <message>
        <source>recommended</source>
        <translation>推荐</translation>
    </message>
</context>
<context>
    <name>headroom::ui::LayoutGridModel</name>
    <message numerus="yes">
        <source>%1 needs %n GPU(s); %2 are there</source>
        <translation>
            <numerusform>%1 需要 %n 个 GPU；现有 %2 个</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 tokens</source>
        <translation>%1 词元</translation>
    </message>
    <message numerus="yes">
        <source>Each layer divided over %n GPU(s)</source>
        <translation>
            <numerusform>每层分到 %n 个 GPU</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>Layers divided into %n stage(s)</source>
        <translation>
            <numerusform>各层分为 %n 个阶段</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::LogPage</name>
    <message>
        <source>Error: %1</source>
        <translation>错误：%1</translation>
    </message>
    <message>
        <source>Filter lines</source>
        <translation>过滤日志</translation>
    </message>
    <message>
        <source>Filter log lines</source>
        <translation>过滤日志行</translation>
    </message>
    <message>
        <source>All lines</source>
        <translation>所有行</translation>
    </message>
    <message>
        <source>Warnings and errors</source>
        <translation>警告和错误</translation>
    </message>
    <message>
        <source>Errors</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>Least severity shown</source>
        <translation>显示的最低级别</translation>
    </message>
    <message>
        <source>&amp;Follow</source>
        <translation>跟随(&amp;F)</translation>
    </message>
    <message>
        <source>Keep the newest line in view</source>
        <translation>始终显示最新一行</translation>
    </message>
    <message>
        <source>Copy &amp;report</source>
        <translation>复制报告(&amp;R)</translation>
    </message>
    <message>
        <source>Copy system, command, state and the last log lines for a bug report</source>
        <translation>复制系统、命令、状态和最后的日志行，用于报告问题</translation>
    </message>
    <message>
        <source>&amp;Clear</source>
        <translation>清空(&amp;C)</translation>
    </message>
    <message>
        <source>Log of the engine</source>
        <translation>引擎日志</translation>
    </message>
    <message>
        <source>What the engine writes appears here.</source>
        <translation>引擎输出的内容显示在此。</translation>
    </message>
    <message numerus="yes">
        <source>%1 of %n line(s) shown</source>
        <translation>
            <numerusform>显示 %1 行，共 %n 行</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1; %n older line(s) dropped</source>
        <translation>
            <numerusform>%1；已丢弃较早的 %n 行</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>headroom::ui::MachineBar</name>
    <message>
        <source>host devices of %1 each</source>
        <translation>主机设备，每个 %1</translation>
    </message>
    <message>
        <source>%1 with %2</source>
        <translation>%1，%2</translation>
    </message>
    <message numerus="yes">
        <source>%n node(s)</source>
        <translation>
            <numerusform>%n 个节点</numerusform>
        </translation>
    </message>
    <message>
        <source>&amp;This machine</source>
        <translation>本机(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;What-if GPUs</source>
        <translation>假设的 GPU(&amp;W)</translation>
    </message>
    <message>
        <source>Number of GPUs</source>
        <translation>GPU 数量</translation>
    </message>
    <message>
        <source>GPU model</source>
        <translation>GPU 型号</translation>
    </message>
    <message>
        <source>GPUs as text</source>
        <translation>以文本写出的 GPU</translation>
    </message>
    <message>
        <source>For example 6xA800-80GB, 2x24GiB,1x48GiB or 2n8xH100-80GB for two nodes of eight</source>
        <translation>例如 6xA800-80GB、2x24GiB,1x48GiB，或 2n8xH100-80GB（两个节点，每个八卡）</translation>
    </message>
</context>
<context>
    <name>headroom::ui::MemoryBars</name>
    <message>
        <source>%1 (%2): %3 of %4</source>
        <translation>%1（%2）：%3，共 %4</translation>
    </message>
    <message>
        <source>Memory of each GPU</source>
        <translation>每个 GPU 的内存</translation>
    </message>
</context>
<context>
    <name>headroom::ui::MemoryBreakdownModel</name>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Share</source>
        <translation>分工</translation>
    </message>
    <message>
        <source>Headroom</source>
        <translation>余量</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ModelBar</name>
    <message>
        <source>&amp;Forget these</source>
        <translation>清除记录(&amp;F)</translation>
    </message>
    <message>
        <source>Open file…</source>
        <translation>打开文件…</translation>
    </message>
    <message>
        <source>Open a config.json, a GGUF file or a safetensors index</source>
        <translation>打开 config.json、GGUF 文件或 safetensors 索引</translation>
    </message>
    <message>
        <source>Open folder…</source>
        <translation>打开文件夹…</translation>
    </message>
    <message>
        <source>Open a model&apos;s folder, with its weights</source>
        <translation>打开含权重的模型文件夹</translation>
    </message>
    <message>
        <source>Catalog…</source>
        <translation>目录…</translation>
    </message>
    <message>
        <source>Choose a model by name, without its files</source>
        <translation>按名称选择模型，无需文件</translation>
    </message>
    <message>
        <source>Recent</source>
        <translation>最近</translation>
    </message>
    <message>
        <source>Models that were opened before</source>
        <translation>以前打开过的模型</translation>
    </message>
    <message>
        <source>Opening %1 …</source>
        <translation>正在打开 %1 …</translation>
    </message>
    <message>
        <source>No model is open</source>
        <translation>尚未打开模型</translation>
    </message>
    <message>
        <source>Drop a config.json, a model folder or a GGUF file here, or choose a model from the catalog.</source>
        <translation>将 config.json、模型文件夹或 GGUF 文件拖到此处，或从目录中选择模型。</translation>
    </message>
</context>
<context>
    <name>headroom::ui::MonitorPage</name>
    <message>
        <source>State</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>Layout</source>
        <translation>布局</translation>
    </message>
    <message>
        <source>Running</source>
        <translation>运行中</translation>
    </message>
    <message>
        <source>Waiting</source>
        <translation>等待中</translation>
    </message>
    <message>
        <source>Tokens/s</source>
        <translation>词元/秒</translation>
    </message>
    <message>
        <source>TTFT p50</source>
        <translation>TTFT p50</translation>
    </message>
    <message>
        <source>TTFT p95</source>
        <translation>TTFT p95</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>Requests that are being answered</source>
        <translation>正在回答的请求</translation>
    </message>
    <message>
        <source>Requests that wait for room</source>
        <translation>等待空间的请求</translation>
    </message>
    <message>
        <source>Tokens generated per second, all requests together</source>
        <translation>所有请求每秒生成的词元数</translation>
    </message>
    <message>
        <source>Time to first token: half of the requests in the window were faster</source>
        <translation>首词元时间：窗口内一半请求更快</translation>
    </message>
    <message>
        <source>Time to first token: 95 % of the requests in the window were faster</source>
        <translation>首词元时间：窗口内 95 % 的请求更快</translation>
    </message>
    <message>
        <source>Share of the KV cache&apos;s blocks in use</source>
        <translation>已使用的 KV 缓存块比例</translation>
    </message>
    <message>
        <source>&amp;Window</source>
        <translation>时间窗口(&amp;W)</translation>
    </message>
    <message>
        <source>Time window of the charts</source>
        <translation>图表的时间窗口</translation>
    </message>
    <message numerus="yes">
        <source>%n minute(s)</source>
        <translation>
            <numerusform>%n 分钟</numerusform>
        </translation>
    </message>
    <message>
        <source>Memory by device</source>
        <translation>各设备内存</translation>
    </message>
    <message>
        <source>Each device of a running engine gets a chart here: weights, KV cache and activations against the plan.</source>
        <translation>运行中引擎的每个设备在此有一张图：权重、KV 缓存和激活与规划的对比。</translation>
    </message>
    <message>
        <source>Tokens per second</source>
        <translation>每秒词元数</translation>
    </message>
    <message>
        <source>No measurement in this window</source>
        <translation>此窗口内没有测量</translation>
    </message>
    <message>
        <source>Time to first token</source>
        <translation>首词元时间</translation>
    </message>
    <message>
        <source>No request in this window</source>
        <translation>此窗口内没有请求</translation>
    </message>
    <message>
        <source>No engine is running. Choose a layout and start it; its figures appear here.</source>
        <translation>没有引擎在运行。选择布局并启动后，数据显示在此。</translation>
    </message>
    <message>
        <source>The engine was stopped. The charts show its last figures.</source>
        <translation>引擎已停止。图表显示其最后的数据。</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message numerus="yes">
        <source>%1 · %n rank(s)</source>
        <translation>
            <numerusform>%1 · %n 个 rank</numerusform>
        </translation>
    </message>
    <message>
        <source>%1 · rank %2</source>
        <translation>%1 · rank %2</translation>
    </message>
    <message>
        <source>%1 · rank %2 · layers %3–%4</source>
        <translation>%1 · rank %2 · 第 %3–%4 层</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 / %2</translation>
    </message>
    <message>
        <source>The engine ended unasked. The charts show its last figures.</source>
        <translation>引擎意外结束。图表显示其最后的数据。</translation>
    </message>
</context>
<context>
    <name>headroom::ui::NoticeArea</name>
    <message>
        <source>Dismiss this message</source>
        <translation>关闭此消息</translation>
    </message>
    <message>
        <source>Dismiss</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>headroom::ui::OptionPanel</name>
    <message>
        <source>Default</source>
        <translation>默认</translation>
    </message>
    <message>
        <source>Default: %1</source>
        <translation>默认：%1</translation>
    </message>
    <message>
        <source>this one</source>
        <translation>当前版本</translation>
    </message>
    <message>
        <source>newest known: %1</source>
        <translation>已知最新：%1</translation>
    </message>
    <message>
        <source>newest known</source>
        <translation>已知最新</translation>
    </message>
    <message>
        <source>&amp;Engine</source>
        <translation>引擎(&amp;E)</translation>
    </message>
    <message>
        <source>Version</source>
        <translation>版本</translation>
    </message>
    <message>
        <source>Conte&amp;xt length</source>
        <translation>上下文长度(&amp;X)</translation>
    </message>
    <message>
        <source>Concurrent re&amp;quests</source>
        <translation>并发请求(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;Data type</source>
        <translation>数据类型(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;KV cache type</source>
        <translation>KV 缓存类型(&amp;K)</translation>
    </message>
    <message>
        <source>Memory &amp;use</source>
        <translation>内存使用率(&amp;U)</translation>
    </message>
    <message>
        <source>Prompt tokens</source>
        <translation>提示词元</translation>
    </message>
    <message>
        <source>Answer tokens</source>
        <translation>回答词元</translation>
    </message>
    <message>
        <source>The engine whose rules and memory use the grid shows</source>
        <translation>网格按此引擎的规则和内存使用计算</translation>
    </message>
    <message>
        <source>Version of the engine; empty means the newest that is known</source>
        <translation>引擎版本；留空表示已知最新版本</translation>
    </message>
    <message>
        <source>Most tokens of one request, prompt and answer together</source>
        <translation>单个请求的最多词元数，含提示和回答</translation>
    </message>
    <message>
        <source>Requests at once that headroom and predictions are for</source>
        <translation>余量和预测所针对的并发请求数</translation>
    </message>
    <message>
        <source>Type of weights and activations</source>
        <translation>权重和激活的类型</translation>
    </message>
    <message>
        <source>Type of the cached keys and values</source>
        <translation>缓存的键和值的类型</translation>
    </message>
    <message>
        <source>Share of each GPU&apos;s memory that the engine may use</source>
        <translation>引擎可使用的每个 GPU 内存比例</translation>
    </message>
    <message>
        <source>Prompt length that predictions are for</source>
        <translation>预测所针对的提示长度</translation>
    </message>
    <message>
        <source>Answer length that predictions are for</source>
        <translation>预测所针对的回答长度</translation>
    </message>
    <message>
        <source>Without CUDA &amp;graphs</source>
        <translation>不用 CUDA 图(&amp;G)</translation>
    </message>
    <message>
        <source>Saves the memory of captured graphs; decoding becomes slower</source>
        <translation>节省 CUDA 图占用的内存；解码会变慢</translation>
    </message>
</context>
<context>
    <name>headroom::ui::PlanPage</name>
    <message>
        <source>Planning …</source>
        <translation>正在规划 …</translation>
    </message>
    <message>
        <source>There is no plan for these inputs.</source>
        <translation>这些输入没有可用的规划。</translation>
    </message>
    <message>
        <source>Open a model to see every layout of these GPUs.</source>
        <translation>打开模型，即可查看这些 GPU 上的所有布局。</translation>
    </message>
    <message>
        <source>Open a model file</source>
        <translation>打开模型文件</translation>
    </message>
    <message>
        <source>Models (*.json *.gguf *.safetensors)</source>
        <translation>模型 (*.json *.gguf *.safetensors)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>所有文件 (*)</translation>
    </message>
    <message>
        <source>Open a model folder</source>
        <translation>打开模型文件夹</translation>
    </message>
    <message>
        <source>Machine</source>
        <translation>机器</translation>
    </message>
    <message>
        <source>Plan for</source>
        <translation>规划条件</translation>
    </message>
    <message>
        <source>Layouts</source>
        <translation>布局</translation>
    </message>
    <message>
        <source>Headroom of the fullest GPU, and the tokens its KV cache has room for. Columns: tensor parallel (TP). Rows: pipeline stages (PP).</source>
        <translation>占用最多的 GPU 的余量，以及 KV 缓存可容纳的词元数。列：张量并行 (TP)。行：流水线阶段 (PP)。</translation>
    </message>
    <message>
        <source>&amp;Replicas (DP)</source>
        <translation>副本数 (DP)(&amp;R)</translation>
    </message>
    <message>
        <source>Layouts: rows are pipeline stages, columns tensor-parallel ranks</source>
        <translation>布局：行为流水线阶段，列为张量并行 rank</translation>
    </message>
</context>
<context>
    <name>headroom::ui::ProcessEnd</name>
    <message>
        <source>The engine did not stop in time and was killed.</source>
        <translation>引擎未能及时停止，已被终止。</translation>
    </message>
    <message>
        <source>The engine was stopped.</source>
        <translation>引擎已停止。</translation>
    </message>
    <message>
        <source>The engine refused to start (status 2) and gave no reason.</source>
        <translation>引擎拒绝启动（状态 2），没有给出原因。</translation>
    </message>
    <message>
        <source>The engine refused to start: %1</source>
        <translation>引擎拒绝启动：%1</translation>
    </message>
    <message>
        <source>The engine failed with status %1 and gave no reason.</source>
        <translation>引擎失败，状态 %1，没有给出原因。</translation>
    </message>
    <message>
        <source>The engine failed (status %1): %2</source>
        <translation>引擎失败（状态 %1）：%2</translation>
    </message>
    <message>
        <source>The engine was killed (%1). The system&apos;s out-of-memory killer was at work meanwhile: the machine ran out of memory. Close other programs, or choose a shorter context or a smaller model.</source>
        <translation>引擎被终止（%1）。其间系统触发了内存不足终止机制：机器内存已耗尽。请关闭其他程序，或选择更短的上下文或更小的模型。</translation>
    </message>
    <message>
        <source>The engine was killed (%1) by a person or by the system, for example by a memory limit or the out-of-memory killer.</source>
        <translation>引擎被用户或系统终止（%1），例如达到内存限制或触发内存不足终止机制。</translation>
    </message>
    <message>
        <source>The engine was ended from outside (%1).</source>
        <translation>引擎被外部结束（%1）。</translation>
    </message>
    <message>
        <source>The engine crashed (%1).</source>
        <translation>引擎崩溃（%1）。</translation>
    </message>
    <message>
        <source>The engine crashed (%1). Its last line: %2</source>
        <translation>引擎崩溃（%1）。最后一行：%2</translation>
    </message>
    <message>
        <source>The engine ended by itself without an error.</source>
        <translation>引擎自行结束，没有错误。</translation>
    </message>
    <message>
        <source>The engine program could not be started: %1</source>
        <translation>无法启动引擎程序：%1</translation>
    </message>
</context>
<context>
    <name>headroom::ui::RankListModel</name>
    <message>
        <source>%1 of %2 read</source>
        <translation>已读取 %1 / %2</translation>
    </message>
    <message>
        <source>replica %1, stage %2, TP %3</source>
        <translation>副本 %1，阶段 %2，TP %3</translation>
    </message>
    <message>
        <source>stage %1, TP %2</source>
        <translation>阶段 %1，TP %2</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>Rank</source>
        <translation>Rank</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Place</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>Layers</source>
        <translation>层数</translation>
    </message>
    <message>
        <source>Planned</source>
        <translation>规划</translation>
    </message>
    <message>
        <source>Allocated</source>
        <translation>已分配</translation>
    </message>
    <message>
        <source>Loaded</source>
        <translation>已加载</translation>
    </message>
</context>
<context>
    <name>headroom::ui::RunPanel</name>
    <message>
        <source>&amp;Start</source>
        <translation>启动(&amp;S)</translation>
    </message>
    <message>
        <source>Start the engine with the chosen layout</source>
        <translation>以所选布局启动引擎</translation>
    </message>
    <message>
        <source>&amp;Restart</source>
        <translation>重新启动(&amp;R)</translation>
    </message>
    <message>
        <source>Start the same layout once more</source>
        <translation>再次启动同一布局</translation>
    </message>
    <message>
        <source>Weights loaded, all ranks together</source>
        <translation>已加载的权重（所有 rank）</translation>
    </message>
    <message>
        <source>Ranks of the engine</source>
        <translation>引擎的 rank</translation>
    </message>
    <message>
        <source>&amp;Kill now</source>
        <translation>立即终止(&amp;K)</translation>
    </message>
    <message>
        <source>S&amp;top</source>
        <translation>停止(&amp;T)</translation>
    </message>
    <message>
        <source>End the engine at once; answers being written are lost</source>
        <translation>立即结束引擎；正在生成的回答会丢失</translation>
    </message>
    <message>
        <source>Stop the engine after what it is doing now</source>
        <translation>完成当前工作后停止引擎</translation>
    </message>
    <message>
        <source>%1 as %2 at %3</source>
        <translation>%1（%2）：%3</translation>
    </message>
    <message>
        <source>The engine runs, but does not answer: %1</source>
        <translation>引擎在运行，但没有响应：%1</translation>
    </message>
</context>
<context>
    <name>headroom::ui::SettingsDialog</name>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>&amp;Language</source>
        <translation>语言(&amp;L)</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>&amp;Theme</source>
        <translation>主题(&amp;T)</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Host &amp;devices</source>
        <translation>主机设备数(&amp;D)</translation>
    </message>
    <message>
        <source>&amp;Memory of each</source>
        <translation>每个的内存(&amp;M)</translation>
    </message>
    <message>
        <source> GiB</source>
        <translation> GiB</translation>
    </message>
    <message>
        <source>Half of the memory, divided</source>
        <translation>内存的一半，平均分配</translation>
    </message>
    <message>
        <source>Host devices are shares of this machine&apos;s processor and memory. They run small models without a GPU; this machine has %1.</source>
        <translation>主机设备是本机处理器和内存的份额，无需 GPU 即可运行小模型；本机有 %1 内存。</translation>
    </message>
</context>
<context>
    <name>headroom::ui::TimeChart</name>
    <message>
        <source>Show as &amp;table…</source>
        <translation>以表格显示(&amp;T)…</translation>
    </message>
    <message>
        <source>&amp;Copy as CSV</source>
        <translation>复制为 CSV(&amp;C)</translation>
    </message>
    <message>
        <source>Show as table, copy as CSV</source>
        <translation>以表格显示、复制为 CSV</translation>
    </message>
    <message>
        <source>Chart menu</source>
        <translation>图表菜单</translation>
    </message>
    <message>
        <source>Menu of the chart “%1”</source>
        <translation>图表“%1”的菜单</translation>
    </message>
</context>
<context>
    <name>main</name>
    <message>
        <source>Plans, starts and watches language models on your own GPUs.</source>
        <translation>在自己的 GPU 上规划、启动和监控语言模型。</translation>
    </message>
    <message>
        <source>A config.json, a model folder, a GGUF file or a name of the catalog.</source>
        <translation>config.json、模型文件夹、GGUF 文件或目录中的名称。</translation>
    </message>
</context>
</TS>
