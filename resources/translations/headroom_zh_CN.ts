<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>Core</name>
    <message>
        <source>%1 / %2 = %3 remainder %4</source>
        <translation>%1 / %2 = %3 余 %4</translation>
    </message>
    <message>
        <source>%1 %2 / %3 = %4 cut a group of %5 (%6)</source>
        <translation>%1 %2 / %3 = %4，切开了大小为 %5 的组（%6）</translation>
    </message>
    <message>
        <source>o_proj input</source>
        <translation>o_proj 的输入</translation>
    </message>
    <message>
        <source>MLP columns</source>
        <translation>MLP 列</translation>
    </message>
    <message>
        <source>expert columns</source>
        <translation>专家的列</translation>
    </message>
    <message>
        <source>%1 stages for %2 layers: every stage needs at least one</source>
        <translation>%1 个阶段对应 %2 层：每个阶段至少需要一层</translation>
    </message>
    <message>
        <source>%1 stages for %2 layers</source>
        <translation>%1 个阶段对应 %2 层</translation>
    </message>
    <message>
        <source>PP=%1 or fewer</source>
        <translation>PP=%1 或更小</translation>
    </message>
    <message>
        <source>this model&apos;s query and key norms run over all heads at once: the engine keeps a layer&apos;s heads on one rank</source>
        <translation>该模型的 query 与 key 归一化同时作用于所有头：引擎把一层的头放在同一个 rank 上</translation>
    </message>
    <message>
        <source>this model&apos;s query and key norms run over all heads at once: the engine keeps the heads of a layer on one rank</source>
        <translation>该模型的 query 与 key 归一化同时作用于所有头：引擎把一层的头放在同一个 rank 上</translation>
    </message>
    <message>
        <source>TP=1 with stages</source>
        <translation>TP=1 加流水线阶段</translation>
    </message>
    <message>
        <source>planned, but the engine cannot run it yet: %1</source>
        <translation>已规划，但引擎还不能运行：%1</translation>
    </message>
    <message>
        <source>the engine cannot run this model yet: %1</source>
        <translation>引擎还不能运行该模型：%1</translation>
    </message>
    <message>
        <source>plan with another --engine</source>
        <translation>改用其他引擎（--engine）规划</translation>
    </message>
    <message>
        <source>open the model in another quantization, or serve it with --device cpu</source>
        <translation>打开该模型的其他量化版本，或用 --device cpu 启动</translation>
    </message>
    <message>
        <source>%1 has element type %2, expected on CUDA devices %3</source>
        <translation>%1 的元素类型为 %2，CUDA 设备上应为 %3</translation>
    </message>
    <message>
        <source>llama.cpp reads GGUF; %1 weights cannot be converted as they are</source>
        <translation>llama.cpp 读取 GGUF；%1 权重无法直接转换</translation>
    </message>
    <message>
        <source>a GGUF of the same model (Q4_K_M is about as large as 4-bit AWQ)</source>
        <translation>同一模型的 GGUF（Q4_K_M 与 4 位 AWQ 大小相近）</translation>
    </message>
    <message>
        <source>TP=%1 and PP=%2: --split-mode is layer or tensor, not both</source>
        <translation>TP=%1 且 PP=%2：--split-mode 只能是 layer 或 tensor 之一</translation>
    </message>
    <message>
        <source>PP=%1 (--split-mode layer)</source>
        <translation>PP=%1（--split-mode layer）</translation>
    </message>
    <message>
        <source>%1 devices for %2 layers and the output layer</source>
        <translation>%1 个设备对应 %2 层和输出层</translation>
    </message>
    <message>
        <source>llama.cpp needs a GGUF file: planned as if the weights were converted at their stored precision</source>
        <translation>llama.cpp 需要 GGUF 文件：按权重以原精度转换后来规划</translation>
    </message>
    <message>
        <source>convert_hf_to_gguf.py, or open the GGUF itself</source>
        <translation>使用 convert_hf_to_gguf.py，或直接打开 GGUF</translation>
    </message>
    <message>
        <source>each replica is a llama-server of its own, behind a router</source>
        <translation>每个副本是路由器后面一个独立的 llama-server</translation>
    </message>
    <message>
        <source>devices work one after another on a request: room, not speed, grows with them</source>
        <translation>设备对一个请求依次工作：增加的是容量而不是速度</translation>
    </message>
    <message>
        <source>%1 devices: the tensor split takes %2 at most</source>
        <translation>%1 个设备：张量切分最多支持 %2 个</translation>
    </message>
    <message>
        <source>%1 has no tensor split</source>
        <translation>%1 不支持张量切分</translation>
    </message>
    <message>
        <source>the tensor split is experimental: it needs flash attention, and --fit does not size it</source>
        <translation>张量切分是实验功能：需要 flash attention，且 --fit 不为它计算大小</translation>
    </message>
    <message>
        <source>PP=%1 (--split-mode layer) always works</source>
        <translation>PP=%1（--split-mode layer）总是可行</translation>
    </message>
    <message>
        <source>%1 devices: counts that are no power of two can stop at an assertion in ggml-backend-meta</source>
        <translation>%1 个设备：数量不是二的幂时可能在 ggml-backend-meta 的断言处停止</translation>
    </message>
    <message>
        <source>attention of a layer has %1 pieces%2: %3 of %4 devices wait in every layer</source>
        <translation>一层的注意力有 %1 份%2：每层有 %4 个设备中的 %3 个在等待</translation>
    </message>
    <message>
        <source> (%1 KV heads each, by the quantization block of attn_output)</source>
        <translation>（按 attn_output 的量化块，每份 %1 个 KV 头）</translation>
    </message>
    <message>
        <source>TP=%1 or fewer</source>
        <translation>TP=%1 或更小</translation>
    </message>
    <message>
        <source>DP=%1 on %2 nodes: plain data parallelism stays on one node</source>
        <translation>DP=%1 跨 %2 个节点：普通数据并行只能在一个节点内</translation>
    </message>
    <message>
        <source>one server a node, behind a router</source>
        <translation>每个节点一个服务器，前面加路由器</translation>
    </message>
    <message>
        <source>GPUs with %1 and %2 GiB free: with TP&gt;1, free memory may differ by a tenth at most; SGLang stops with: &quot;The memory capacity is unbalanced.&quot;</source>
        <translation>GPU 可用内存为 %1 与 %2 GiB：TP&gt;1 时可用内存最多相差十分之一；SGLang 会停止并报告：&quot;The memory capacity is unbalanced.&quot;</translation>
    </message>
    <message>
        <source>equal GPUs, TP=1 with stages, or SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0</source>
        <translation>使用相同的 GPU，TP=1 加流水线阶段，或设置 SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0</translation>
    </message>
    <message>
        <source>the vocabulary of %1, padded to %2, does not divide by %3 (%4); the workers stop with: &quot;%5 is not divisible by %6&quot;</source>
        <translation>词表 %1（补齐到 %2）不能被 %3 整除（%4）；工作进程停止并报告：&quot;%5 is not divisible by %6&quot;</translation>
    </message>
    <message>
        <source>the vocabulary of %1 does not divide by %2 (%3); the workers stop with: &quot;%4 is not divisible by %5&quot;</source>
        <translation>词表 %1 不能被 %2 整除（%3）；工作进程停止并报告：&quot;%4 is not divisible by %5&quot;</translation>
    </message>
    <message>
        <source>%1 query heads do not divide by %2 (%3); the workers stop at &quot;assert self.total_num_heads % tp_size == 0&quot;, without a message</source>
        <translation>%1 个 query 头不能被 %2 整除（%3）；工作进程在 &quot;assert self.total_num_heads % tp_size == 0&quot; 处停止，没有提示</translation>
    </message>
    <message>
        <source>%1 KV heads do not divide by %2 (%3); the workers stop at &quot;assert %4&quot;, without a message</source>
        <translation>%1 个 KV 头不能被 %2 整除（%3）；工作进程在 &quot;assert %4&quot; 处停止，没有提示</translation>
    </message>
    <message>
        <source>%1 KV heads cannot be copied evenly by %2 (%3); the workers stop at &quot;assert %4&quot;, without a message</source>
        <translation>%1 个 KV 头不能均匀复制到 %2（%3）；工作进程在 &quot;assert %4&quot; 处停止，没有提示</translation>
    </message>
    <message>
        <source>%1 MLP columns do not divide by %2 (%3); the workers stop with: &quot;%4 is not divisible by %5&quot;</source>
        <translation>%1 个 MLP 列不能被 %2 整除（%3）；工作进程停止并报告：&quot;%4 is not divisible by %5&quot;</translation>
    </message>
    <message>
        <source>%1 columns of an expert do not divide by %2 (%3); the workers stop at &quot;assert intermediate_size % self.moe_tp_size == 0&quot;</source>
        <translation>每个专家的 %1 列不能被 %2 整除（%3）；工作进程在 &quot;assert intermediate_size % self.moe_tp_size == 0&quot; 处停止</translation>
    </message>
    <message>
        <source>--ep-size %1 keeps experts whole</source>
        <translation>--ep-size %1 使专家保持完整</translation>
    </message>
    <message>
        <source>--ep_size %1 keeps experts whole</source>
        <translation>--ep_size %1 使专家保持完整</translation>
    </message>
    <message>
        <source>%1 columns of the shared experts do not divide by %2 (%3)</source>
        <translation>共享专家的 %1 列不能被 %2 整除（%3）</translation>
    </message>
    <message>
        <source>%1; SGLang refuses the partition</source>
        <translation>%1；SGLang 拒绝这种切分</translation>
    </message>
    <message>
        <source>with stages, overlapped scheduling is off and speculative decoding is refused</source>
        <translation>使用流水线阶段时，重叠调度关闭，且不接受推测解码</translation>
    </message>
    <message>
        <source>%1: kernels may accept it and answer wrongly</source>
        <translation>%1：内核可能接受但给出错误答案</translation>
    </message>
    <message>
        <source>a TP that keeps groups whole</source>
        <translation>选择不切开组的 TP</translation>
    </message>
    <message>
        <source>a TP that keeps groups whole; float16 would start, and may answer wrongly</source>
        <translation>选择不切开组的 TP；float16 可以启动，但可能给出错误答案</translation>
    </message>
    <message>
        <source>%1 KV heads on %2 ranks: each is held %3 times</source>
        <translation>%1 个 KV 头分布在 %2 个 rank 上：每个保存 %3 份</translation>
    </message>
    <message>
        <source>TensorRT-LLM reads no GGUF</source>
        <translation>TensorRT-LLM 不读取 GGUF</translation>
    </message>
    <message>
        <source>a safetensors checkpoint, or llama.cpp or Headroom</source>
        <translation>使用 safetensors 检查点，或 llama.cpp 或 Headroom</translation>
    </message>
    <message>
        <source>%1 query heads do not divide by %2 (%3); the workers stop at &quot;assert self.num_heads % tp_size == 0&quot;</source>
        <translation>%1 个 query 头不能被 %2 整除（%3）；工作进程在 &quot;assert self.num_heads % tp_size == 0&quot; 处停止</translation>
    </message>
    <message>
        <source>%1 KV heads on %2 ranks (%3): weights of KV heads are dealt or copied evenly only</source>
        <translation>%1 个 KV 头在 %2 个 rank 上（%3）：KV 头的权重只能均匀分配或复制</translation>
    </message>
    <message>
        <source>%1 MLP columns do not divide by %2 (%3); the workers stop at an assertion in Linear</source>
        <translation>%1 个 MLP 列不能被 %2 整除（%3）；工作进程在 Linear 的断言处停止</translation>
    </message>
    <message>
        <source>%1 columns of an expert do not divide by %2 (%3)</source>
        <translation>每个专家的 %1 列不能被 %2 整除（%3）</translation>
    </message>
    <message>
        <source>%1; TensorRT-LLM refuses the partition (ValueError)</source>
        <translation>%1；TensorRT-LLM 拒绝这种切分（ValueError）</translation>
    </message>
    <message>
        <source>each replica is a server of its own on its own GPUs, behind a router</source>
        <translation>每个副本是路由器后面一个使用自己 GPU 的独立服务器</translation>
    </message>
    <message>
        <source>a %1 checkpoint does not load as it is: TensorRT-LLM has its own INT4-AWQ form</source>
        <translation>%1 检查点不能直接加载：TensorRT-LLM 有自己的 INT4-AWQ 格式</translation>
    </message>
    <message>
        <source>quantize the original with NVIDIA&apos;s Model Optimizer</source>
        <translation>用 NVIDIA 的 Model Optimizer 量化原模型</translation>
    </message>
    <message>
        <source>Unknown quantization method: %1. vLLM 0.32 removed it; AWQ, GPTQ, FP8, compressed-tensors, MXFP4 and NVFP4 remain</source>
        <translation>未知的量化方法：%1。vLLM 0.32 已移除它；仍支持 AWQ、GPTQ、FP8、compressed-tensors、MXFP4 和 NVFP4</translation>
    </message>
    <message>
        <source>use llama.cpp or Headroom, or an earlier vLLM</source>
        <translation>使用 llama.cpp 或 Headroom，或更早的 vLLM</translation>
    </message>
    <message>
        <source>vllm@0.31 or earlier, or an AWQ, GPTQ or FP8 checkpoint</source>
        <translation>vllm@0.31 或更早版本，或 AWQ、GPTQ、FP8 检查点</translation>
    </message>
    <message>
        <source>vLLM %1.%2 is older than what is known here: planned as %3.%4</source>
        <translation>vLLM %1.%2 早于此处已知的版本：按 %3.%4 规划</translation>
    </message>
    <message>
        <source>vllm@0.6 or newer</source>
        <translation>vllm@0.6 或更新版本</translation>
    </message>
    <message>
        <source>Unsupported quantization config: bits=%1, sym=%2. vLLM 0.32 takes GPTQ with 4 or 8 symmetric bits</source>
        <translation>不支持的量化配置：bits=%1，sym=%2。vLLM 0.32 接受 4 或 8 位对称的 GPTQ</translation>
    </message>
    <message>
        <source>another quantization of the same model</source>
        <translation>同一模型的其他量化版本</translation>
    </message>
    <message>
        <source>Model architecture %1 was supported in vLLM until v%2.%3.%4, and is not supported anymore</source>
        <translation>vLLM 在 v%2.%3.%4 之前支持架构 %1，之后不再支持</translation>
    </message>
    <message>
        <source>Model architectures [&apos;%1&apos;] are not supported for now</source>
        <translation>暂不支持模型架构 [&apos;%1&apos;]</translation>
    </message>
    <message>
        <source>another engine, or another version of vLLM</source>
        <translation>换用其他引擎，或 vLLM 的其他版本</translation>
    </message>
    <message>
        <source>Bfloat16 is only supported on GPUs with compute capability of at least 8.0; %1 has %2</source>
        <translation>Bfloat16 只在计算能力至少 8.0 的 GPU 上支持；%1 为 %2</translation>
    </message>
    <message>
        <source>Bfloat16 is only supported on GPUs with compute capability of at least 8.0; %1 has %2, and this family is not run in float16</source>
        <translation>Bfloat16 只在计算能力至少 8.0 的 GPU 上支持；%1 为 %2，而该系列不以 float16 运行</translation>
    </message>
    <message>
        <source>&quot;The model type &apos;%1&apos; does not support float16. Reason: Numerical instability. Please use bfloat16 or float32 instead.&quot;</source>
        <translation>&quot;The model type &apos;%1&apos; does not support float16. Reason: Numerical instability. Please use bfloat16 or float32 instead.&quot;（该模型类型不支持 float16：数值不稳定）</translation>
    </message>
    <message>
        <source>--dtype bfloat16 (compute capability 8.0 or more), or --dtype float32 at twice the bytes</source>
        <translation>--dtype bfloat16（计算能力 8.0 或更高），或字节数加倍的 --dtype float32</translation>
    </message>
    <message>
        <source>%1 query heads do not divide by %2 (%3); vLLM stops before loading: &quot;Total number of attention heads (%4) must be divisible by tensor parallel size (%5).&quot;</source>
        <translation>%1 个 query 头不能被 %2 整除（%3）；vLLM 在加载之前停止：&quot;Total number of attention heads (%4) must be divisible by tensor parallel size (%5).&quot;</translation>
    </message>
    <message>
        <source>NotImplementedError: pipeline parallelism is not supported for this model (%1 has no SupportsPP interface)</source>
        <translation>NotImplementedError：该模型不支持流水线并行（%1 没有 SupportsPP 接口）</translation>
    </message>
    <message>
        <source>%1 %2 / %3 = %4, and %5; vLLM: &quot;Weight input_size_per_partition = %6 is not divisible by weight quantization block_k = %7.&quot;</source>
        <translation>%1 %2 / %3 = %4，且 %5；vLLM：&quot;Weight input_size_per_partition = %6 is not divisible by weight quantization block_k = %7.&quot;</translation>
    </message>
    <message>
        <source>%1 %2 / %3 = %4 is no multiple of the AWQ group of %5 (%6); vLLM: &quot;The input size is not aligned with the quantized weight shape. This can be caused by too large tensor parallel size.&quot;</source>
        <translation>%1 %2 / %3 = %4 不是 AWQ 组大小 %5 的倍数（%6）；vLLM：&quot;The input size is not aligned with the quantized weight shape. This can be caused by too large tensor parallel size.&quot;</translation>
    </message>
    <message>
        <source>%1 %2 / %3 = %4 is no multiple of the group of %5 (%6); vLLM refuses the partition</source>
        <translation>%1 %2 / %3 = %4 不是组大小 %5 的倍数（%6）；vLLM 拒绝这种切分</translation>
    </message>
    <message>
        <source>%1 %2 / %3 = %4 is no multiple of the GPTQ group of %5 (%6); without a kernel for bfloat16 vLLM stops with: &quot;Failed to find a kernel that can implement the WNA16 linear layer.&quot;</source>
        <translation>%1 %2 / %3 = %4 不是 GPTQ 组大小 %5 的倍数（%6）；没有 bfloat16 内核，vLLM 停止并报告：&quot;Failed to find a kernel that can implement the WNA16 linear layer.&quot;</translation>
    </message>
    <message>
        <source>%1 columns of an expert do not divide by TP x DP = %2 (%3)</source>
        <translation>每个专家的 %1 列不能被 TP × DP = %2 整除（%3）</translation>
    </message>
    <message>
        <source>--enable-expert-parallel keeps experts whole</source>
        <translation>--enable-expert-parallel 使专家保持完整</translation>
    </message>
    <message>
        <source>%1 columns of an expert / %2 = %3, and %4; vLLM: &quot;The output_size of gate&apos;s and up&apos;s weight = %5 is not divisible by weight quantization block_n = %6.&quot;</source>
        <translation>每个专家的 %1 列 / %2 = %3，且 %4；vLLM：&quot;The output_size of gate&apos;s and up&apos;s weight = %5 is not divisible by weight quantization block_n = %6.&quot;</translation>
    </message>
    <message>
        <source>%1 KV heads do not divide by %2 (%3); the workers stop at &quot;assert self.total_num_kv_heads % tp_size == 0&quot;, without a message</source>
        <translation>%1 个 KV 头不能被 %2 整除（%3）；工作进程在 &quot;assert self.total_num_kv_heads % tp_size == 0&quot; 处停止，没有提示</translation>
    </message>
    <message>
        <source>TP=%1 is no multiple of %2 KV heads (%3); the workers stop at &quot;assert tp_size % self.total_num_kv_heads == 0&quot;, without a message</source>
        <translation>TP=%1 不是 %2 个 KV 头的倍数（%3）；工作进程在 &quot;assert tp_size % self.total_num_kv_heads == 0&quot; 处停止，没有提示</translation>
    </message>
    <message>
        <source>%1 KV heads on %2 ranks: this model class does not copy KV heads; the workers stop with: &quot;ZeroDivisionError: integer modulo by zero&quot;</source>
        <translation>%1 个 KV 头在 %2 个 rank 上：该模型类不复制 KV 头；工作进程停止并报告：&quot;ZeroDivisionError: integer modulo by zero&quot;</translation>
    </message>
    <message>
        <source>%1 state groups do not divide by %2 (%3); vLLM: &quot;If tensor parallel world size does not divide num_groups, then num_groups must equal 1.&quot;</source>
        <translation>%1 个状态组不能被 %2 整除（%3）；vLLM：&quot;If tensor parallel world size does not divide num_groups, then num_groups must equal 1.&quot;</translation>
    </message>
    <message>
        <source>%1 MLP columns do not divide by %2 (%3); the workers stop at an assertion: output size % tp_size == 0</source>
        <translation>%1 个 MLP 列不能被 %2 整除（%3）；工作进程在断言 output size % tp_size == 0 处停止</translation>
    </message>
    <message>
        <source>%1 (compute capability %2) has no bfloat16</source>
        <translation>%1（计算能力 %2）不支持 bfloat16</translation>
    </message>
    <message>
        <source>%1 (compute capability %2) has no FP8 arithmetic: weights stay FP8, products run in 16 bits, prompts slower</source>
        <translation>%1（计算能力 %2）没有 FP8 运算：权重保持 FP8，乘积以 16 位计算，提示处理较慢</translation>
    </message>
    <message>
        <source>custom all-reduce takes 2, 4, 6, 8 or 16 ranks, not %1: NCCL is used, slower at small batches</source>
        <translation>自定义 all-reduce 接受 2、4、6、8 或 16 个 rank，不接受 %1：改用 NCCL，小批量时较慢</translation>
    </message>
    <message>
        <source>custom all-reduce is off for %1 GPUs on PCIe: NCCL is used, slower at small batches</source>
        <translation>%1 个 PCIe GPU 时自定义 all-reduce 关闭：改用 NCCL，小批量时较慢</translation>
    </message>
    <message>
        <source>TP=2 with pipeline stages</source>
        <translation>TP=2 加流水线阶段</translation>
    </message>
    <message>
        <source>MLP columns %1 / %2 = %3 cut a GPTQ group of %4: kernels accept it, but may fail at the first product (Hopper) or answer wrongly (ExLlama)</source>
        <translation>MLP 列 %1 / %2 = %3 切开了大小为 %4 的 GPTQ 组：内核会接受，但可能在第一次乘积时失败（Hopper）或给出错误答案（ExLlama）</translation>
    </message>
    <message>
        <source>unrecognized arguments: --enable-expert-parallel; it came with vLLM 0.8</source>
        <translation>无法识别的参数：--enable-expert-parallel；它从 vLLM 0.8 起提供</translation>
    </message>
    <message>
        <source>a newer vLLM, or no expert parallelism</source>
        <translation>更新的 vLLM，或不用专家并行</translation>
    </message>
    <message>
        <source>&quot;Number of experts in the model must be greater than 0 when expert parallelism is enabled.&quot;</source>
        <translation>&quot;Number of experts in the model must be greater than 0 when expert parallelism is enabled.&quot;（该模型没有专家）</translation>
    </message>
    <message>
        <source>no expert parallelism: the model is dense</source>
        <translation>不用专家并行：该模型是稠密模型</translation>
    </message>
    <message>
        <source>no expert parallelism</source>
        <translation>不用专家并行</translation>
    </message>
    <message>
        <source>sparse latent attention has no backend below compute capability 9.0: &quot;No valid attention backend found&quot;</source>
        <translation>计算能力低于 9.0 时稀疏潜在注意力没有后端：&quot;No valid attention backend found&quot;</translation>
    </message>
    <message>
        <source>Hopper or newer GPUs</source>
        <translation>Hopper 或更新的 GPU</translation>
    </message>
    <message>
        <source>%1 vision heads do not divide by %2 (%3): the vision tower is held whole on each rank, or stops where its class has no copy of it</source>
        <translation>%1 个视觉头不能被 %2 整除（%3）：视觉塔在每个 rank 上完整保存；若其模型类不支持复制则会停止</translation>
    </message>
    <message>
        <source>%1 experts on %2 ranks: the first %3 hold one more</source>
        <translation>%1 个专家分布在 %2 个 rank 上：前 %3 个多一个</translation>
    </message>
    <message>
        <source>--ep-size is for models with experts; this one is dense</source>
        <translation>--ep-size 用于有专家的模型；该模型是稠密模型</translation>
    </message>
    <message>
        <source>--ep_size is for models with experts; this one is dense</source>
        <translation>--ep_size 用于有专家的模型；该模型是稠密模型</translation>
    </message>
    <message>
        <source>%1 experts do not divide by --ep-size %2 (%3): whole experts are dealt evenly only; the workers stop at &quot;assert num_experts % self.moe_ep_size == 0&quot;</source>
        <translation>%1 个专家不能被 --ep-size %2 整除（%3）：完整专家只能均匀分配；工作进程在 &quot;assert num_experts % self.moe_ep_size == 0&quot; 处停止</translation>
    </message>
    <message>
        <source>attention in %1 replicas of %2 GPUs: each holds its own requests&apos; cache, experts are shared</source>
        <translation>注意力分为 %1 个副本，每个 %2 块 GPU：各自保存自己请求的缓存，专家共享</translation>
    </message>
    <message>
        <source>attention on %1 ranks and %2 replicas: attention data parallelism keeps it whole on each rank</source>
        <translation>注意力分布在 %1 个 rank 和 %2 个副本上：注意力数据并行要求每个 rank 保存完整的注意力</translation>
    </message>
    <message>
        <source>TP=1 with DP=%1</source>
        <translation>TP=1 且 DP=%1</translation>
    </message>
    <message>
        <source>LMDeploy reads no GGUF</source>
        <translation>LMDeploy 不读取 GGUF</translation>
    </message>
    <message>
        <source>LMDeploy has no pipeline stages</source>
        <translation>LMDeploy 没有流水线阶段</translation>
    </message>
    <message>
        <source>TP, or %1 replicas of TP=%2</source>
        <translation>使用 TP，或 %1 个 TP=%2 的副本</translation>
    </message>
    <message>
        <source>TurboMind deals columns of experts, not whole ones</source>
        <translation>TurboMind 按列切分专家，而不是分配完整专家</translation>
    </message>
    <message>
        <source>no expert parallelism, or LMDeploy&apos;s PyTorch engine</source>
        <translation>不用专家并行，或使用 LMDeploy 的 PyTorch 引擎</translation>
    </message>
    <message>
        <source>%1 query heads do not divide by %2 (%3); TurboMind stops at its check of the attention layer</source>
        <translation>%1 个 query 头不能被 %2 整除（%3）；TurboMind 在检查注意力层时停止</translation>
    </message>
    <message>
        <source>%1 KV heads are repeated up to %2 for %3 ranks, and %4</source>
        <translation>%1 个 KV 头为 %3 个 rank 重复到 %2 个，且 %4</translation>
    </message>
    <message>
        <source>the embedding is divided along %1 hidden columns (%2)</source>
        <translation>嵌入沿 %1 个隐藏列切分（%2）</translation>
    </message>
    <message>
        <source>MLP columns %1 are filled up with zeros to %2 (%3 groups of %4 on each of %5 ranks)</source>
        <translation>MLP 的 %1 列补零到 %2（%5 个 rank 各 %3 组，每组 %4）</translation>
    </message>
    <message>
        <source>GPU %1 (%2): %3 = %4 GiB, budget %5 = %6 GiB: %7 GiB too much</source>
        <translation>GPU %1（%2）：%3 = %4 GiB，预算 %5 = %6 GiB：超出 %7 GiB</translation>
    </message>
    <message>
        <source>GPU %1 (%2): about %3 of %4 GiB are free at the start, less than %5 of the whole; vLLM stops with: &quot;Free memory on device (%6/%7 GiB) on startup is less than desired GPU memory utilization (%8, %9 GiB)&quot;</source>
        <translation>GPU %1（%2）：启动时 %4 GiB 中约有 %3 GiB 可用，不足总量的 %5；vLLM 会停止并报告：&quot;Free memory on device (%6/%7 GiB) on startup is less than desired GPU memory utilization (%8, %9 GiB)&quot;</translation>
    </message>
    <message>
        <source>--gpu-memory-utilization %1, or end other programs on GPU %2</source>
        <translation>--gpu-memory-utilization %1，或结束 GPU %2 上的其他程序</translation>
    </message>
    <message>
        <source>end other programs on GPU %1</source>
        <translation>结束 GPU %1 上的其他程序</translation>
    </message>
    <message>
        <source>GPU %1 (%2): %3 = %4 GiB, budget %5 = %6 GiB: only %7 GiB left</source>
        <translation>GPU %1（%2）：%3 = %4 GiB，预算 %5 = %6 GiB：只剩 %7 GiB</translation>
    </message>
    <message>
        <source>%1 GiB free at start x %2</source>
        <translation>启动时空闲 %1 GiB × %2</translation>
    </message>
    <message>
        <source>weights and activations, and %1 of what they leave of %2 GiB</source>
        <translation>权重与激活，加上 %2 GiB 中其余部分的 %1</translation>
    </message>
    <message>
        <source>%1 GiB - %2 for the CUDA context and a margin</source>
        <translation>%1 GiB - %2（CUDA 上下文与余地）</translation>
    </message>
    <message>
        <source>weights %1 + activations %2 + %3</source>
        <translation>权重 %1 + 激活 %2 + %3</translation>
    </message>
    <message>
        <source>weights %1 + %2</source>
        <translation>权重 %1 + %2</translation>
    </message>
    <message>
        <source>graphs %1 + %2</source>
        <translation>图 %1 + %2</translation>
    </message>
    <message>
        <source>runtime %1 + %2</source>
        <translation>运行时 %1 + %2</translation>
    </message>
    <message>
        <source>KV cache %1 for %2 request of %3 tokens</source>
        <translation>KV 缓存 %1（%2 个请求，每个 %3 词元）</translation>
    </message>
    <message>
        <source>KV cache %1 for %2 requests of %3 tokens</source>
        <translation>KV 缓存 %1（%2 个请求，每个 %3 词元）</translation>
    </message>
    <message>
        <source>unknown: the weights do not fit</source>
        <translation>未知：权重放不下</translation>
    </message>
    <message>
        <source>unknown: the KV cache does not hold one request</source>
        <translation>未知：KV 缓存放不下一个请求</translation>
    </message>
    <message>
        <source>TP sizes that work: %1</source>
        <translation>可用的 TP 大小：%1</translation>
    </message>
    <message>
        <source>TP=%1 with PP=%2 uses all %3 GPUs; %4</source>
        <translation>TP=%1 加 PP=%2 用上全部 %3 块 GPU；%4</translation>
    </message>
    <message>
        <source>%1 replicas of %2</source>
        <translation>%1 个 %2 副本</translation>
    </message>
    <message>
        <source>%1 (%2 GPUs) fits</source>
        <translation>%1（%2 块 GPU）放得下</translation>
    </message>
    <message>
        <source>%1 (1 GPU) fits</source>
        <translation>%1（1 块 GPU）放得下</translation>
    </message>
    <message>
        <source>%1 (1 GPU)</source>
        <translation>%1（1 块 GPU）</translation>
    </message>
    <message>
        <source>1 request at once instead of %1</source>
        <translation>同时 1 个请求而不是 %1 个</translation>
    </message>
    <message>
        <source>%1, or --gpu-memory-utilization %2</source>
        <translation>%1，或 --gpu-memory-utilization %2</translation>
    </message>
    <message>
        <source>%1 requests at once instead of %2</source>
        <translation>同时 %1 个请求而不是 %2 个</translation>
    </message>
    <message>
        <source>%1, or %2 fits</source>
        <translation>%1，或 %2 放得下</translation>
    </message>
    <message>
        <source>%1 requests at once instead of %2, or %3 (%4 GPUs) fits</source>
        <translation>同时 %1 个请求而不是 %2 个，或 %3（%4 块 GPU）放得下</translation>
    </message>
    <message>
        <source>--max-model-len %1, or %2 (%3 GPUs) fits</source>
        <translation>--max-model-len %1，或 %2（%3 块 GPU）放得下</translation>
    </message>
    <message>
        <source>--max-model-len %1, or --gpu-memory-utilization %2</source>
        <translation>--max-model-len %1，或 --gpu-memory-utilization %2</translation>
    </message>
    <message>
        <source>--max-model-len %1, or --gpu-memory-utilization %2, or %3 (%4 GPUs) fits</source>
        <translation>--max-model-len %1，或 --gpu-memory-utilization %2，或 %3（%4 块 GPU）放得下</translation>
    </message>
    <message>
        <source>--gpu-memory-utilization %1, or %2 (%3 GPUs) fits</source>
        <translation>--gpu-memory-utilization %1，或 %2（%3 块 GPU）放得下</translation>
    </message>
    <message>
        <source>%1 requests at once instead of %2, or --gpu-memory-utilization %3</source>
        <translation>同时 %1 个请求而不是 %2 个，或 --gpu-memory-utilization %3</translation>
    </message>
    <message>
        <source>%1 requests at once instead of %2, or --gpu-memory-utilization %3, or %4 (%5 GPUs) fits</source>
        <translation>同时 %1 个请求而不是 %2 个，或 --gpu-memory-utilization %3，或 %4（%5 块 GPU）放得下</translation>
    </message>
    <message>
        <source>more GPUs, or more memory on each</source>
        <translation>更多 GPU，或每块更多内存</translation>
    </message>
    <message>
        <source>more GPUs, or a quantized checkpoint</source>
        <translation>更多 GPU，或量化的检查点</translation>
    </message>
    <message>
        <source>no traffic between GPUs</source>
        <translation>GPU 之间没有通信</translation>
    </message>
    <message>
        <source>only hidden states pass between stages</source>
        <translation>阶段之间只传递隐藏状态</translation>
    </message>
    <message>
        <source>host memory</source>
        <translation>主机内存</translation>
    </message>
    <message>
        <source>its all-reduces move %1 MiB a token and GPU over %2</source>
        <translation>其 all-reduce 每词元每 GPU 经 %2 传输 %1 MiB</translation>
    </message>
    <message>
        <source>%1 on %2 GPU: fits with %3 GiB to spare on the fullest%4</source>
        <translation>%1，使用 %2 块 GPU：放得下，占用最多的一块还余 %3 GiB%4</translation>
    </message>
    <message>
        <source>%1 on %2 GPUs: fits with %3 GiB to spare on the fullest%4</source>
        <translation>%1，使用 %2 块 GPU：放得下，占用最多的一块还余 %3 GiB%4</translation>
    </message>
    <message>
        <source>%1 on %2 GPU: fits tightly with %3 GiB to spare on the fullest%4</source>
        <translation>%1，使用 %2 块 GPU：勉强放下，占用最多的一块还余 %3 GiB%4</translation>
    </message>
    <message>
        <source>%1 on %2 GPUs: fits tightly with %3 GiB to spare on the fullest%4</source>
        <translation>%1，使用 %2 块 GPU：勉强放下，占用最多的一块还余 %3 GiB%4</translation>
    </message>
    <message>
        <source>%1 on %2 host device: fits with %3 GiB to spare on the fullest%4</source>
        <translation>%1，使用 %2 个主机设备：放得下，占用最多的一个还余 %3 GiB%4</translation>
    </message>
    <message>
        <source>%1 on %2 host devices: fits with %3 GiB to spare on the fullest%4</source>
        <translation>%1，使用 %2 个主机设备：放得下，占用最多的一个还余 %3 GiB%4</translation>
    </message>
    <message>
        <source>%1 on %2 host device: fits tightly with %3 GiB to spare on the fullest%4</source>
        <translation>%1，使用 %2 个主机设备：勉强放下，占用最多的一个还余 %3 GiB%4</translation>
    </message>
    <message>
        <source>%1 on %2 host devices: fits tightly with %3 GiB to spare on the fullest%4</source>
        <translation>%1，使用 %2 个主机设备：勉强放下，占用最多的一个还余 %3 GiB%4</translation>
    </message>
    <message>
        <source>, and is predicted to make the most tokens for %1 requests (%2 tokens/s); %3.</source>
        <translation>，预计在 %1 个请求时产生最多词元（%2 词元/秒）；%3。</translation>
    </message>
    <message>
        <source>, and is predicted fastest for one request (%1 tokens/s); %2.</source>
        <translation>，预计单个请求时最快（%1 词元/秒）；%2。</translation>
    </message>
    <message>
        <source>, on the fewest devices: they share one machine&apos;s memory, so more of them add room rather than speed.</source>
        <translation>，使用最少的设备：它们共用一台机器的内存，增加设备只增加容量而不增加速度。</translation>
    </message>
    <message>
        <source>, on the fewest GPUs.</source>
        <translation>，使用最少的 GPU。</translation>
    </message>
    <message>
        <source>measured here</source>
        <translation>在此测得</translation>
    </message>
    <message>
        <source>unknown: the memory bandwidth of this machine was not measured</source>
        <translation>未知：这台机器的内存带宽没有测量</translation>
    </message>
    <message>
        <source>unknown: no figures for this GPU</source>
        <translation>未知：没有这种 GPU 的数据</translation>
    </message>
    <message>
        <source>unknown: layers without attention are not modelled</source>
        <translation>未知：没有为无注意力的层建模</translation>
    </message>
    <message>
        <source>modelled: bandwidth, compute and links of the catalog at shares that timed kernels reach</source>
        <translation>模型估算：按目录中的带宽、算力和互连，取实测内核能达到的比例</translation>
    </message>
    <message>
        <source>each token&apos;s cache stands on %1 ranks of a stage: there are fewer KV heads than ranks, or one latent for all heads</source>
        <translation>每个词元的缓存在一个阶段的 %1 个 rank 上重复：KV 头少于 rank，或所有头共用一个潜在向量</translation>
    </message>
    <message>
        <source>the tightest rank decides how many blocks all ranks have; what others have room for beyond that stays empty</source>
        <translation>最紧张的 rank 决定所有 rank 的块数；其他 rank 多出的空间空置</translation>
    </message>
    <message>
        <source>memory that the engine leaves alone, for its context, communication and other programs</source>
        <translation>引擎不使用的内存，留给上下文、通信和其他程序</translation>
    </message>
    <message>
        <source>%1 of %2 GPUs are not used</source>
        <translation>%2 块 GPU 中有 %1 块没有使用</translation>
    </message>
    <message>
        <source>layers of each stage, balanced by bytes; vLLM&apos;s own split counts layers only</source>
        <translation>每个阶段的层数，按字节均衡；vLLM 自己的切分只数层数</translation>
    </message>
    <message>
        <source>layers of each stage, balanced by bytes; its own split counts layers only</source>
        <translation>每个阶段的层数，按字节均衡；引擎自己的切分只数层数</translation>
    </message>
    <message>
        <source>layers of each stage, balanced by bytes: about %1 % more tokens than the engine&apos;s own split by count</source>
        <translation>每个阶段的层数，按字节均衡：比引擎按层数切分多约 %1 % 的词元</translation>
    </message>
    <message>
        <source>layers of each stage, balanced by bytes; the engine&apos;s own split by count does not fit</source>
        <translation>每个阶段的层数，按字节均衡；引擎按层数的切分放不下</translation>
    </message>
    <message>
        <source>the GPUs of this layout</source>
        <translation>此布局的 GPU</translation>
    </message>
    <message>
        <source>the GPUs of the first replica; start each replica on its own</source>
        <translation>第一个副本的 GPU；每个副本分别启动</translation>
    </message>
    <message>
        <source>the GPUs of the ranks, in their order</source>
        <translation>各 rank 的 GPU，按顺序</translation>
    </message>
    <message>
        <source>all GPUs of the machine</source>
        <translation>机器的全部 GPU</translation>
    </message>
    <message>
        <source>ranks exchange data through /dev/shm; a container has 64 MiB of it unless told otherwise</source>
        <translation>rank 之间通过 /dev/shm 交换数据；容器默认只有 64 MiB</translation>
    </message>
    <message>
        <source>the server&apos;s port, on the machine</source>
        <translation>服务器在机器上的端口</translation>
    </message>
    <message>
        <source>as explained for the variable</source>
        <translation>见变量的说明</translation>
    </message>
    <message>
        <source>the model&apos;s files, where they are, read-only</source>
        <translation>模型文件，位置不变，只读</translation>
    </message>
    <message>
        <source>this layout as plan --format json prints it: its stages follow the cards&apos; memory</source>
        <translation>plan --format json 输出的此布局：各阶段按显卡内存分配</translation>
    </message>
    <message>
        <source>ranks that share each layer</source>
        <translation>共同承担每一层的 rank</translation>
    </message>
    <message>
        <source>stages that follow one another</source>
        <translation>前后相接的阶段</translation>
    </message>
    <message>
        <source>replicas that share the requests</source>
        <translation>分担请求的副本</translation>
    </message>
    <message>
        <source>host devices of this machine</source>
        <translation>本机的主机设备</translation>
    </message>
    <message>
        <source>memory of each host device</source>
        <translation>每个主机设备的内存</translation>
    </message>
    <message>
        <source>tokens of one request, prompt and answer</source>
        <translation>一个请求的词元，提示与回答</translation>
    </message>
    <message>
        <source>type of weights and arithmetic</source>
        <translation>权重与运算的类型</translation>
    </message>
    <message>
        <source>GPUs that share each layer</source>
        <translation>共同承担每一层的 GPU</translation>
    </message>
    <message>
        <source>whole experts on each rank in place of columns of all of them</source>
        <translation>每个 rank 保存完整专家，而不是所有专家的列</translation>
    </message>
    <message>
        <source>several machines: a Ray cluster that was started before</source>
        <translation>多台机器：事先启动的 Ray 集群</translation>
    </message>
    <message>
        <source>machines; run it on each with its own --node-rank</source>
        <translation>机器数；在每台上以各自的 --node-rank 运行</translation>
    </message>
    <message>
        <source>machines; run it on each with its --node-rank</source>
        <translation>机器数；在每台上以各自的 --node-rank 运行</translation>
    </message>
    <message>
        <source>machines; run it on each with its --node-rank and --dist-init-addr</source>
        <translation>机器数；在每台上以各自的 --node-rank 和 --dist-init-addr 运行</translation>
    </message>
    <message>
        <source>address of the first machine, as the others reach it</source>
        <translation>第一台机器的地址，其他机器可以访问</translation>
    </message>
    <message>
        <source>share of each GPU that vLLM may take</source>
        <translation>vLLM 可使用的每块 GPU 的份额</translation>
    </message>
    <message>
        <source>type of the KV cache</source>
        <translation>KV 缓存的类型</translation>
    </message>
    <message>
        <source>made while loading</source>
        <translation>加载时生成</translation>
    </message>
    <message>
        <source>no CUDA graphs: less memory, slower decoding</source>
        <translation>不用 CUDA 图：占用较少内存，解码较慢</translation>
    </message>
    <message>
        <source>the model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>GPUs of a stage; attention uses a share of them</source>
        <translation>一个阶段的 GPU；注意力使用其中一部分</translation>
    </message>
    <message>
        <source>replicas of the attention, each with its own requests</source>
        <translation>注意力的副本，各自处理自己的请求</translation>
    </message>
    <message>
        <source>attention in replicas, experts shared by all of them</source>
        <translation>注意力分副本，专家由全部副本共享</translation>
    </message>
    <message>
        <source>ranks that whole experts are dealt to</source>
        <translation>分配完整专家的 rank</translation>
    </message>
    <message>
        <source>sequences in one step</source>
        <translation>一步中的序列</translation>
    </message>
    <message>
        <source>share of each device&apos;s memory to use</source>
        <translation>使用每个设备内存的比例</translation>
    </message>
    <message>
        <source>share of each GPU&apos;s free memory for weights and KV cache</source>
        <translation>每张 GPU 空闲显存中用于权重和 KV 缓存的比例</translation>
    </message>
    <message>
        <source>a file with the lines %1</source>
        <translation>包含 %1 各行的文件</translation>
    </message>
    <message>
        <source>a checkpoint of this model in %1: the plan assumes one</source>
        <translation>此模型的 %1 检查点：规划假定有这样一个</translation>
    </message>
    <message>
        <source>%1, which has no experts</source>
        <translation>%1，它没有专家</translation>
    </message>
    <message>
        <source>a mixture of experts</source>
        <translation>混合专家模型</translation>
    </message>
    <message>
        <source>leave it out</source>
        <translation>请去掉该选项</translation>
    </message>
    <message>
        <source>leave it out: vLLM&apos;s replicas of expert models always share one set of experts</source>
        <translation>请去掉该选项：vLLM 的专家模型副本总是共享一组专家</translation>
    </message>
    <message>
        <source>sglang or tensorrt-llm</source>
        <translation>sglang 或 tensorrt-llm</translation>
    </message>
    <message>
        <source>%1, the checkpoint&apos;s own</source>
        <translation>%1，即检查点自身的类型</translation>
    </message>
    <message>
        <source>trtllm-serve has no option for it</source>
        <translation>trtllm-serve 没有这个选项</translation>
    </message>
    <message>
        <source>auto, float16 or bfloat16</source>
        <translation>auto、float16 或 bfloat16</translation>
    </message>
    <message>
        <source>TurboMind&apos;s smaller caches are 8-bit and 4-bit integers, which are not planned</source>
        <translation>TurboMind 更小的缓存是 8 位和 4 位整数，尚不能规划</translation>
    </message>
    <message>
        <source>nothing: llama.cpp&apos;s slots are the requests at once</source>
        <translation>不写：llama.cpp 的槽位就是并发请求数</translation>
    </message>
    <message>
        <source>--concurrency is their number</source>
        <translation>--concurrency 就是它们的数量</translation>
    </message>
    <message>
        <source>tokens in one step</source>
        <translation>一步中的词元</translation>
    </message>
    <message>
        <source>share of what weights and activations leave</source>
        <translation>权重与激活之外剩余部分的份额</translation>
    </message>
    <message>
        <source>all layers on GPUs</source>
        <translation>所有层放在 GPU 上</translation>
    </message>
    <message>
        <source>how devices share the model</source>
        <translation>设备如何分担模型</translation>
    </message>
    <message>
        <source>layers of each device, the output layer counted</source>
        <translation>每个设备的层数，含输出层</translation>
    </message>
    <message>
        <source>the tensor split needs flash attention</source>
        <translation>张量切分需要 flash attention</translation>
    </message>
    <message>
        <source>tokens of all requests together</source>
        <translation>全部请求的词元之和</translation>
    </message>
    <message>
        <source>requests at once</source>
        <translation>同时的请求数</translation>
    </message>
    <message>
        <source>type of the cached keys</source>
        <translation>缓存的 key 类型</translation>
    </message>
    <message>
        <source>type of the cached values</source>
        <translation>缓存的 value 类型</translation>
    </message>
    <message>
        <source>the engine whose rules this plan follows</source>
        <translation>本规划所依据的引擎</translation>
    </message>
    <message>
        <source>share of what the weights leave for the KV cache</source>
        <translation>权重之外剩余部分中用于 KV 缓存的份额</translation>
    </message>
    <message>
        <source>at least one</source>
        <translation>至少一个</translation>
    </message>
    <message>
        <source>a model without layers</source>
        <translation>没有层的模型</translation>
    </message>
    <message>
        <source>more than 0 and at most 1</source>
        <translation>大于 0 且不超过 1</translation>
    </message>
    <message>
        <source>an engine that deals whole experts</source>
        <translation>能分配完整专家的引擎</translation>
    </message>
    <message>
        <source>plan with --engine vllm, sglang or tensorrt-llm</source>
        <translation>改用 --engine vllm、sglang 或 tensorrt-llm 规划</translation>
    </message>
    <message>
        <source>at most %1 (the model&apos;s positions)</source>
        <translation>最多 %1（模型的位置数）</translation>
    </message>
    <message>
        <source>none: Headroom runs a checkpoint as it is stored</source>
        <translation>不设置：Headroom 按检查点的存储格式运行</translation>
    </message>
    <message>
        <source>none: llama.cpp runs a GGUF as it is stored</source>
        <translation>不设置：llama.cpp 按 GGUF 的存储格式运行</translation>
    </message>
    <message>
        <source>open a GGUF of the wanted type</source>
        <translation>打开所需类型的 GGUF</translation>
    </message>
    <message>
        <source>auto, float32, float16 or bfloat16</source>
        <translation>auto、float32、float16 或 bfloat16</translation>
    </message>
    <message>
        <source>auto, float32, float16, bfloat16 or fp8</source>
        <translation>auto、float32、float16、bfloat16 或 fp8</translation>
    </message>
    <message>
        <source>auto, bfloat16, float16, fp8, fp8_e4m3 or fp8_e5m2</source>
        <translation>auto、bfloat16、float16、fp8、fp8_e4m3 或 fp8_e5m2</translation>
    </message>
    <message>
        <source>auto, float32, float16, bfloat16, q8_0, q4_0 or q4_1</source>
        <translation>auto、float32、float16、bfloat16、q8_0、q4_0 或 q4_1</translation>
    </message>
    <message>
        <source>fp8 or int8</source>
        <translation>fp8 或 int8</translation>
    </message>
    <message>
        <source>or open a checkpoint that is quantized so</source>
        <translation>或打开这样量化的检查点</translation>
    </message>
    <message>
        <source>nothing: llama.cpp takes what it needs and leaves a margin of 1024 MiB</source>
        <translation>不设置：llama.cpp 按需占用并留出 1024 MiB</translation>
    </message>
    <message>
        <source>a version such as vllm@0.21</source>
        <translation>版本，例如 vllm@0.21</translation>
    </message>
    <message>
        <source>%1, with @VERSION where needed</source>
        <translation>%1，需要时加 @版本</translation>
    </message>
    <message>
        <source>at most %1 GPUs in all</source>
        <translation>总共最多 %1 块 GPU</translation>
    </message>
    <message>
        <source>%1 to %2</source>
        <translation>%1 到 %2</translation>
    </message>
    <message>
        <source>rank %1 (stage %2, GPU %3)</source>
        <translation>rank %1（阶段 %2，GPU %3）</translation>
    </message>
    <message>
        <source>a budget of %1 %2 (%3 x %4 %5)</source>
        <translation>预算 %1 %2（%3 × %4 %5）</translation>
    </message>
    <message>
        <source>a budget of %1 %2 (%3 x %4 %5 for %6 ranks)</source>
        <translation>预算 %1 %2（%3 × %4 %5，供 %6 个 rank）</translation>
    </message>
    <message>
        <source>a budget of %1 %2 (what other processes leave of %3 %4)</source>
        <translation>预算 %1 %2（其他进程在 %3 %4 中留下的）</translation>
    </message>
    <message>
        <source>a budget of %1 %2 (what other processes leave of %3 %4 for %5 ranks)</source>
        <translation>预算 %1 %2（其他进程在 %3 %4 中留下的，供 %5 个 rank）</translation>
    </message>
    <message>
        <source>%1 GiB - %2 of other processes</source>
        <translation>%1 GiB - 其他进程的 %2</translation>
    </message>
    <message>
        <source>CUDA is off: %1.</source>
        <translation>CUDA 未启用：%1。</translation>
    </message>
    <message>
        <source>CUDA is off: %1 could not be loaded (%2).</source>
        <translation>CUDA 未启用：无法加载 %1（%2）。</translation>
    </message>
    <message>
        <source>CUDA is off: %1 cannot be used (%2).</source>
        <translation>CUDA 未启用：无法使用 %1（%2）。</translation>
    </message>
    <message>
        <source>CUDA is off: %1 is not Headroom&apos;s CUDA module (it has no headroom_cuda_open).</source>
        <translation>CUDA 未启用：%1 不是 Headroom 的 CUDA 模块（其中没有 headroom_cuda_open）。</translation>
    </message>
    <message>
        <source>CUDA is off: device %1 does not answer (%2).</source>
        <translation>CUDA 未启用：设备 %1 没有响应（%2）。</translation>
    </message>
    <message>
        <source>the NVIDIA driver library libcuda.so.1 was not found</source>
        <translation>未找到 NVIDIA 驱动库 libcuda.so.1</translation>
    </message>
    <message>
        <source>Headroom&apos;s CUDA module %1 was not found; packaging/setup --cuda builds it</source>
        <translation>未找到 Headroom 的 CUDA 模块 %1；packaging/setup --cuda 可以构建它</translation>
    </message>
    <message>
        <source>the driver gave no answer in time</source>
        <translation>驱动未及时响应</translation>
    </message>
    <message>
        <source>headroom-engine could not be started</source>
        <translation>无法启动 headroom-engine</translation>
    </message>
    <message>
        <source>%1 %2 (weights %3 + activations %4 + %5 for one sequence of %6 tokens)</source>
        <translation>%1 %2（权重 %3 + 激活 %4 + 一个 %6 词元的序列 %5）</translation>
    </message>
    <message>
        <source>lower the maximum length, give the device more memory, or use more ranks</source>
        <translation>降低最大长度，给设备更多内存，或使用更多 rank</translation>
    </message>
    <message>
        <source>a GPU of %1 bytes</source>
        <translation>%1 字节的 GPU</translation>
    </message>
    <message>
        <source>at least 16 MiB each</source>
        <translation>每块至少 16 MiB</translation>
    </message>
    <message>
        <source>write the unit: 24GiB</source>
        <translation>写上单位：24GiB</translation>
    </message>
    <message>
        <source>GPUs &quot;%1&quot;</source>
        <translation>GPU “%1”</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>空</translation>
    </message>
    <message>
        <source>&quot;%1&quot;</source>
        <translation>“%1”</translation>
    </message>
    <message>
        <source>a GPU of the catalog or a size such as 24GiB</source>
        <translation>目录中的 GPU，或大小如 24GiB</translation>
    </message>
    <message>
        <source>nearest names: %1</source>
        <translation>相近的名称：%1</translation>
    </message>
    <message>
        <source>local, host, 6xA800-80GB, 2x24GiB,1x48GiB or 2n8xH100-80GB</source>
        <translation>local、host、6xA800-80GB、2x24GiB,1x48GiB 或 2n8xH100-80GB</translation>
    </message>
    <message>
        <source>an empty item</source>
        <translation>空的一项</translation>
    </message>
    <message>
        <source>GPUs a node, as in 2n8xH100-80GB</source>
        <translation>每个节点的 GPU 数，如 2n8xH100-80GB</translation>
    </message>
    <message>
        <source>%1 x %2 GPUs</source>
        <translation>%1 x %2 块 GPU</translation>
    </message>
    <message>
        <source>tensor-parallel size %1</source>
        <translation>张量并行大小 %1</translation>
    </message>
    <message>
        <source>%1 query heads</source>
        <translation>%1 个 query 头</translation>
    </message>
    <message>
        <source>%1 query heads, expected at most one rank a head</source>
        <translation>%1 个 query 头，应为每个头最多一个 rank</translation>
    </message>
    <message>
        <source>at most one rank a head</source>
        <translation>每个头最多一个 rank</translation>
    </message>
    <message>
        <source>use TP=%1 or fewer, or pipeline stages</source>
        <translation>使用 TP=%1 或更小，或流水线阶段</translation>
    </message>
    <message>
        <source>%1 query heads of %2 with o_proj in blocks of %3 (heads stay together by %4)</source>
        <translation>%1 个大小为 %2 的 query 头，o_proj 的块为 %3（每 %4 个头不拆开）</translation>
    </message>
    <message>
        <source>%1 query heads of %2 with o_proj in blocks of %3 (heads stay together by %4), expected at most %5 ranks</source>
        <translation>%1 个大小为 %2 的 query 头，o_proj 的块为 %3（每 %4 个头不拆开），应为最多 %5 个 rank</translation>
    </message>
    <message>
        <source>at most %1 ranks</source>
        <translation>最多 %1 个 rank</translation>
    </message>
    <message>
        <source>sizes of 1 or more</source>
        <translation>大小至少为 1</translation>
    </message>
    <message>
        <source>pipeline size %1</source>
        <translation>流水线大小 %1</translation>
    </message>
    <message>
        <source>%1 layers</source>
        <translation>%1 层</translation>
    </message>
    <message>
        <source>at least one layer a stage</source>
        <translation>每个阶段至少一层</translation>
    </message>
    <message>
        <source>use PP=%1 or fewer</source>
        <translation>使用 PP=%1 或更小</translation>
    </message>
    <message>
        <source>tensor-parallel size %1: %2, expected %3</source>
        <translation>张量并行大小 %1：%2，应为 %3</translation>
    </message>
    <message>
        <source>chunked attention</source>
        <translation>分块注意力</translation>
    </message>
    <message>
        <source>latent attention (MLA)</source>
        <translation>潜在注意力（MLA）</translation>
    </message>
    <message>
        <source>linear attention</source>
        <translation>线性注意力</translation>
    </message>
    <message>
        <source>Mamba layers</source>
        <translation>Mamba 层</translation>
    </message>
    <message>
        <source>short convolutions</source>
        <translation>短卷积</translation>
    </message>
    <message>
        <source>cross attention</source>
        <translation>交叉注意力</translation>
    </message>
    <message>
        <source>compressed attention</source>
        <translation>压缩注意力</translation>
    </message>
    <message>
        <source>layers without attention</source>
        <translation>没有注意力的层</translation>
    </message>
    <message>
        <source>experts of unknown number for a token</source>
        <translation>每词元专家数未知</translation>
    </message>
    <message>
        <source>layers without an MLP</source>
        <translation>没有 MLP 的层</translation>
    </message>
    <message>
        <source>MLP without a gate</source>
        <translation>没有门控的 MLP</translation>
    </message>
    <message>
        <source>a bias of the output head</source>
        <translation>输出头的偏置</translation>
    </message>
    <message>
        <source>mixture of experts</source>
        <translation>混合专家</translation>
    </message>
    <message>
        <source>%1 quantization</source>
        <translation>%1 量化</translation>
    </message>
    <message>
        <source>a JSON object</source>
        <translation>JSON 对象</translation>
    </message>
    <message>
        <source>valid JSON</source>
        <translation>有效的 JSON</translation>
    </message>
    <message>
        <source>the file is damaged or truncated; fetch it again</source>
        <translation>文件损坏或被截断；请重新获取</translation>
    </message>
    <message>
        <source>JSON of type %1</source>
        <translation>类型为 %1 的 JSON</translation>
    </message>
    <message>
        <source>an integer from %1 to %2</source>
        <translation>%1 到 %2 的整数</translation>
    </message>
    <message>
        <source>a number from %1 to %2</source>
        <translation>%1 到 %2 的数</translation>
    </message>
    <message>
        <source>true or false</source>
        <translation>true 或 false</translation>
    </message>
    <message>
        <source>a list of integers from %1 to %2</source>
        <translation>%1 到 %2 的整数列表</translation>
    </message>
    <message>
        <source>a list of numbers</source>
        <translation>数的列表</translation>
    </message>
    <message>
        <source>a list of strings</source>
        <translation>字符串列表</translation>
    </message>
    <message>
        <source>an object</source>
        <translation>对象</translation>
    </message>
    <message>
        <source>no such file</source>
        <translation>没有这个文件</translation>
    </message>
    <message>
        <source>a file that can be read</source>
        <translation>可读取的文件</translation>
    </message>
    <message>
        <source>something that is not a regular file</source>
        <translation>不是普通文件</translation>
    </message>
    <message>
        <source>a read error</source>
        <translation>读取错误</translation>
    </message>
    <message>
        <source>check the disk</source>
        <translation>请检查磁盘</translation>
    </message>
    <message>
        <source>a JSON file of at most %1 MiB</source>
        <translation>最多 %1 MiB 的 JSON 文件</translation>
    </message>
    <message>
        <source>an empty file</source>
        <translation>空文件</translation>
    </message>
    <message>
        <source>download it again</source>
        <translation>请重新下载</translation>
    </message>
    <message>
        <source>a Git LFS pointer of %1 bytes</source>
        <translation>%1 字节的 Git LFS 指针</translation>
    </message>
    <message>
        <source>a Git LFS pointer of %1 bytes (the real file has %2)</source>
        <translation>%1 字节的 Git LFS 指针（真实文件为 %2）</translation>
    </message>
    <message>
        <source>fetch the real file: `git lfs install &amp;&amp; git lfs pull` in the clone, or download it from the hub</source>
        <translation>获取真实文件：在克隆中运行 `git lfs install &amp;&amp; git lfs pull`，或从模型库下载</translation>
    </message>
    <message>
        <source>an HTML page of %1 bytes</source>
        <translation>%1 字节的 HTML 页面</translation>
    </message>
    <message>
        <source>download the raw file; a page is what a login, a licence form or a wrong link returns</source>
        <translation>请下载原始文件；登录页、许可表单或错误链接会返回网页</translation>
    </message>
    <message>
        <source>a server&apos;s message: %1</source>
        <translation>服务器的消息：%1</translation>
    </message>
    <message>
        <source>download it again with access to the model</source>
        <translation>请在获得模型访问权后重新下载</translation>
    </message>
    <message>
        <source>only zero bytes at the begin</source>
        <translation>开头全是零字节</translation>
    </message>
    <message>
        <source>only zero bytes at the beginning</source>
        <translation>开头全是零字节</translation>
    </message>
    <message>
        <source>the download was reserved on disk and never filled; download it again</source>
        <translation>下载只在磁盘上预留而没有写入；请重新下载</translation>
    </message>
    <message>
        <source>one value for each of the %1 layers</source>
        <translation>%1 层各一个值</translation>
    </message>
    <message>
        <source>the size of the vocabulary</source>
        <translation>词表的大小</translation>
    </message>
    <message>
        <source>RoPE scaling &quot;%1&quot;</source>
        <translation>RoPE 缩放 &quot;%1&quot;</translation>
    </message>
    <message>
        <source>RoPE scaling &quot;%1&quot; is unknown</source>
        <translation>未知的 RoPE 缩放 &quot;%1&quot;</translation>
    </message>
    <message>
        <source>at least one layer with attention heads</source>
        <translation>至少一个有注意力头的层</translation>
    </message>
    <message>
        <source>a divisor of the %1 query heads</source>
        <translation>%1 个 query 头的约数</translation>
    </message>
    <message>
        <source>no general.architecture in the metadata</source>
        <translation>元数据中没有 general.architecture</translation>
    </message>
    <message>
        <source>the architecture&apos;s name</source>
        <translation>架构的名称</translation>
    </message>
    <message>
        <source>is this a model, or a part of one?</source>
        <translation>这是模型，还是模型的一部分？</translation>
    </message>
    <message>
        <source>the image or audio part of a model</source>
        <translation>模型的图像或音频部分</translation>
    </message>
    <message>
        <source>a language model</source>
        <translation>语言模型</translation>
    </message>
    <message>
        <source>open the GGUF file beside it</source>
        <translation>请打开旁边的 GGUF 文件</translation>
    </message>
    <message>
        <source>an adapter (LoRA)</source>
        <translation>适配器（LoRA）</translation>
    </message>
    <message>
        <source>open the model that it was trained for</source>
        <translation>请打开它所针对的模型</translation>
    </message>
    <message>
        <source>an importance matrix</source>
        <translation>重要性矩阵</translation>
    </message>
    <message>
        <source>architecture &quot;%1&quot; is unknown: the common keys are read</source>
        <translation>未知的架构 &quot;%1&quot;：按通用键读取</translation>
    </message>
    <message>
        <source>architecture &quot;%1&quot;</source>
        <translation>架构 &quot;%1&quot;</translation>
    </message>
    <message>
        <source>no metadata key %1</source>
        <translation>没有元数据键 %1</translation>
    </message>
    <message>
        <source>an integer from 1 to %1</source>
        <translation>1 到 %1 的整数</translation>
    </message>
    <message>
        <source>%1 of %2 bytes at byte %3, past the end of the file (%4 bytes)</source>
        <translation>%2 字节的%1位于第 %3 字节，超出文件末尾（%4 字节）</translation>
    </message>
    <message>
        <source>a complete GGUF file</source>
        <translation>完整的 GGUF 文件</translation>
    </message>
    <message>
        <source>the download is truncated; fetch it again</source>
        <translation>下载被截断；请重新获取</translation>
    </message>
    <message>
        <source>the download is truncated, or the file was split into raw parts; fetch it again</source>
        <translation>下载被截断，或文件被切成原始分块；请重新获取</translation>
    </message>
    <message>
        <source>at most %1 bytes</source>
        <translation>最多 %1 字节</translation>
    </message>
    <message>
        <source>metadata key %1 of value type %2</source>
        <translation>元数据键 %1 的值类型为 %2</translation>
    </message>
    <message>
        <source>a value type from 0 to 12</source>
        <translation>0 到 12 的值类型</translation>
    </message>
    <message>
        <source>the file is damaged or newer than this reader</source>
        <translation>文件损坏，或比本程序更新</translation>
    </message>
    <message>
        <source>metadata key %1 with arrays inside an array</source>
        <translation>元数据键 %1 的数组中含有数组</translation>
    </message>
    <message>
        <source>an array of numbers or strings</source>
        <translation>数或字符串的数组</translation>
    </message>
    <message>
        <source>metadata key %1 with %2 array elements, more than the file holds</source>
        <translation>元数据键 %1 有 %2 个数组元素，超出文件内容</translation>
    </message>
    <message>
        <source>metadata key %1 with %2 array elements</source>
        <translation>元数据键 %1 有 %2 个数组元素</translation>
    </message>
    <message>
        <source>at most %1</source>
        <translation>最多 %1</translation>
    </message>
    <message>
        <source>tensor %1 with %2 dimensions</source>
        <translation>张量 %1 有 %2 个维度</translation>
    </message>
    <message>
        <source>tensor %1 with an extent of %2</source>
        <translation>张量 %1 的某一维为 %2</translation>
    </message>
    <message>
        <source>a shape that fits the file</source>
        <translation>与文件相符的形状</translation>
    </message>
    <message>
        <source>the name twice</source>
        <translation>名称出现两次</translation>
    </message>
    <message>
        <source>each name once</source>
        <translation>每个名称一次</translation>
    </message>
    <message>
        <source>an offset of %1 in %2 bytes of data</source>
        <translation>在 %2 字节的数据中偏移 %1</translation>
    </message>
    <message>
        <source>an offset of %1</source>
        <translation>偏移 %1</translation>
    </message>
    <message>
        <source>a multiple of the alignment %1</source>
        <translation>对齐 %1 的倍数</translation>
    </message>
    <message>
        <source>tensor %1 uses tensor type %2, newer than this reader</source>
        <translation>张量 %1 使用类型 %2，比本程序更新</translation>
    </message>
    <message>
        <source>rows of %1 elements of %2</source>
        <translation>每行 %1 个 %2 元素</translation>
    </message>
    <message>
        <source>a multiple of %1</source>
        <translation>%1 的倍数</translation>
    </message>
    <message>
        <source>%1 of shape [%2] at byte %3, past the end of the file (%4 bytes)</source>
        <translation>形状为 [%2] 的%1位于第 %3 字节，超出文件末尾（%4 字节）</translation>
    </message>
    <message>
        <source>a GGUF file</source>
        <translation>GGUF 文件</translation>
    </message>
    <message>
        <source>one raw piece of a file that was cut into pieces</source>
        <translation>被切块的文件的一个原始分块</translation>
    </message>
    <message>
        <source>put the pieces together first: cat model.gguf.part* &gt; model.gguf</source>
        <translation>请先合并：cat model.gguf.part* &gt; model.gguf</translation>
    </message>
    <message>
        <source>a file that shrank while it was read</source>
        <translation>读取时变小的文件</translation>
    </message>
    <message>
        <source>a header of more than %1 MiB</source>
        <translation>超过 %1 MiB 的文件头</translation>
    </message>
    <message>
        <source>%1 at the begin of %2 bytes</source>
        <translation>%2 字节的开头为 %1</translation>
    </message>
    <message>
        <source>%1 at the beginning of %2 bytes</source>
        <translation>%2 字节的开头为 %1</translation>
    </message>
    <message>
        <source>bytes %1</source>
        <translation>字节 %1</translation>
    </message>
    <message>
        <source>a GGUF file, which begins &quot;GGUF&quot;</source>
        <translation>以 &quot;GGUF&quot; 开头的 GGUF 文件</translation>
    </message>
    <message>
        <source>fetch it again, or open the file it belongs to</source>
        <translation>请重新获取，或打开它所属的文件</translation>
    </message>
    <message>
        <source>a big-endian GGUF file</source>
        <translation>大端序的 GGUF 文件</translation>
    </message>
    <message>
        <source>a little-endian one</source>
        <translation>小端序的文件</translation>
    </message>
    <message>
        <source>use the file made for this kind of machine</source>
        <translation>请使用适合本机的文件</translation>
    </message>
    <message>
        <source>GGUF version %1</source>
        <translation>GGUF 版本 %1</translation>
    </message>
    <message>
        <source>version 2 or 3</source>
        <translation>版本 2 或 3</translation>
    </message>
    <message>
        <source>convert the model again</source>
        <translation>请重新转换模型</translation>
    </message>
    <message>
        <source>%1 tensors and %2 metadata keys in %3 bytes</source>
        <translation>%3 字节中有 %1 个张量和 %2 个元数据键</translation>
    </message>
    <message>
        <source>metadata key %1 twice</source>
        <translation>元数据键 %1 出现两次</translation>
    </message>
    <message>
        <source>each key once</source>
        <translation>每个键一次</translation>
    </message>
    <message>
        <source>a power of two up to 1048576</source>
        <translation>不超过 1048576 的二的幂</translation>
    </message>
    <message>
        <source>part %1 of %2 without the first part</source>
        <translation>第 %1 / %2 部分，没有第一部分</translation>
    </message>
    <message>
        <source>part %1 of %2 without the first part beside it</source>
        <translation>第 %1 / %2 部分，旁边没有第一部分</translation>
    </message>
    <message>
        <source>download the missing parts</source>
        <translation>请下载缺少的部分</translation>
    </message>
    <message>
        <source>at most %1 parts</source>
        <translation>最多 %1 个部分</translation>
    </message>
    <message>
        <source>a split file of %1 parts under this name</source>
        <translation>以此命名的 %1 个部分的分割文件</translation>
    </message>
    <message>
        <source>a name that ends in -00001-of-%1.gguf</source>
        <translation>以 -00001-of-%1.gguf 结尾的名称</translation>
    </message>
    <message>
        <source>give the parts their original names</source>
        <translation>请恢复各部分原来的名称</translation>
    </message>
    <message>
        <source>%1 of %2 parts missing (%3)</source>
        <translation>%2 个部分缺少 %1 个（%3）</translation>
    </message>
    <message>
        <source>all parts in one folder</source>
        <translation>所有部分在同一文件夹</translation>
    </message>
    <message>
        <source>%1 tensors in all parts</source>
        <translation>所有部分共 %1 个张量</translation>
    </message>
    <message>
        <source>the parts do not belong together</source>
        <translation>这些部分不属于同一个文件</translation>
    </message>
    <message>
        <source>part %1 of %2</source>
        <translation>第 %1 部分，共 %2 部分</translation>
    </message>
    <message>
        <source>tensor %1 in two parts</source>
        <translation>张量 %1 出现在两个部分中</translation>
    </message>
    <message>
        <source>each tensor in one part</source>
        <translation>每个张量只在一个部分中</translation>
    </message>
    <message>
        <source>dtype is not given: bfloat16 is assumed</source>
        <translation>没有给出 dtype：假定为 bfloat16</translation>
    </message>
    <message>
        <source>a dtype such as &quot;bfloat16&quot;</source>
        <translation>dtype，例如 &quot;bfloat16&quot;</translation>
    </message>
    <message>
        <source>no such key</source>
        <translation>没有这个键</translation>
    </message>
    <message>
        <source>is this a language model&apos;s config.json?</source>
        <translation>这是语言模型的 config.json 吗？</translation>
    </message>
    <message>
        <source>vocab_size is not given: the class default %1 is taken</source>
        <translation>没有给出 vocab_size：取模型类的默认值 %1</translation>
    </message>
    <message>
        <source>%1 (compute capability %2) has no FP8 arithmetic, which SGLang&apos;s expert kernel needs: &quot;type fp8e4nv not supported in this architecture&quot;</source>
        <translation>%1（计算能力 %2）没有 FP8 运算，而 SGLang 的专家内核需要它：&quot;type fp8e4nv not supported in this architecture&quot;</translation>
    </message>
    <message>
        <source>vLLM, which keeps FP8 as weights alone here; or an AWQ or GPTQ checkpoint</source>
        <translation>vLLM（在此仅以 FP8 存放权重），或 AWQ、GPTQ 检查点</translation>
    </message>
    <message>
        <source>%1 is not given: the class default %2 is taken</source>
        <translation>未给出 %1：采用类的默认值 %2</translation>
    </message>
    <message>
        <source>layer_types: &quot;%1&quot; is unknown: such layers are taken for full attention</source>
        <translation>layer_types：未知的 &quot;%1&quot;：这些层按完全注意力处理</translation>
    </message>
    <message>
        <source>model_type &quot;%1&quot; is unknown: its language model &quot;%2&quot; is counted, other parts are not</source>
        <translation>未知的 model_type &quot;%1&quot;：计入其语言模型 &quot;%2&quot;，不计入其他部分</translation>
    </message>
    <message>
        <source>the vision tower is not counted</source>
        <translation>未计入视觉塔</translation>
    </message>
    <message>
        <source>the audio tower is not counted</source>
        <translation>未计入音频塔</translation>
    </message>
    <message>
        <source>the parts that speak are not counted</source>
        <translation>未计入负责发声的部分</translation>
    </message>
    <message>
        <source>prediction layers are not counted</source>
        <translation>未计入多 token 预测层</translation>
    </message>
    <message>
        <source>blocks that several layers share are counted once, with the first of these layers</source>
        <translation>多层共享的块只计一次，算在其中第一层</translation>
    </message>
    <message>
        <source>each layer is counted as two, one for each of its attentions: engines divide stages between whole layers</source>
        <translation>每层按两层计，每个注意力一层：引擎只在整层之间划分流水段</translation>
    </message>
    <message>
        <source>keys and values shared between layers (use_cla) are not counted as shared</source>
        <translation>层间共享的键和值（use_cla）未按共享计算</translation>
    </message>
    <message>
        <source>a divisor of hidden_size %1, or the key head_dim</source>
        <translation>hidden_size %1 的约数，或键 head_dim</translation>
    </message>
    <message>
        <source>max_position_embeddings is not given: the context length is unknown</source>
        <translation>没有给出 max_position_embeddings：上下文长度未知</translation>
    </message>
    <message>
        <source>%1 factors, one for each rotated pair</source>
        <translation>%1 个因子，每个旋转对一个</translation>
    </message>
    <message>
        <source>rope_scaling lacks original_max_position_embeddings: max_position_embeddings is taken</source>
        <translation>rope_scaling 缺少 original_max_position_embeddings：取 max_position_embeddings</translation>
    </message>
    <message>
        <source>one entry for each of the %1 layers</source>
        <translation>%1 层各一项</translation>
    </message>
    <message>
        <source>full_attention, sliding_attention, chunked_attention, linear_attention, conv or mamba</source>
        <translation>full_attention、sliding_attention、chunked_attention、linear_attention、conv 或 mamba</translation>
    </message>
    <message>
        <source>a divisor of the %1 experts</source>
        <translation>%1 个专家的约数</translation>
    </message>
    <message>
        <source>at most the %1 groups</source>
        <translation>最多 %1 个组</translation>
    </message>
    <message>
        <source>at most the %1 experts of %2 groups</source>
        <translation>最多 %2 个组中的 %1 个专家</translation>
    </message>
    <message>
        <source>the number of experts used for a token is not given</source>
        <translation>没有给出每词元使用的专家数</translation>
    </message>
    <message>
        <source>at most the %1 experts</source>
        <translation>最多 %1 个专家</translation>
    </message>
    <message>
        <source>the width of one expert</source>
        <translation>一个专家的宽度</translation>
    </message>
    <message>
        <source>a size, as kv_lora_rank is given</source>
        <translation>大小，因为给出了 kv_lora_rank</translation>
    </message>
    <message>
        <source>activation &quot;%1&quot;</source>
        <translation>激活函数 &quot;%1&quot;</translation>
    </message>
    <message>
        <source>quantization_config has several groups: sizes follow the first</source>
        <translation>quantization_config 有多个组：大小按第一组</translation>
    </message>
    <message>
        <source>quantization &quot;%1&quot; is unknown: sizes are those of the unquantized model</source>
        <translation>未知的量化 &quot;%1&quot;：按未量化的模型计算大小</translation>
    </message>
    <message>
        <source>model_type is not given: sizes follow the Llama family&apos;s names</source>
        <translation>没有给出 model_type：按 Llama 系列的名称计算大小</translation>
    </message>
    <message>
        <source>model_type &quot;%1&quot; is unknown: sizes follow the Llama family&apos;s names</source>
        <translation>未知的 model_type &quot;%1&quot;：按 Llama 系列的名称计算大小</translation>
    </message>
    <message>
        <source>an unnamed model family</source>
        <translation>未命名的模型系列</translation>
    </message>
    <message>
        <source>model family &quot;%1&quot;</source>
        <translation>模型系列 &quot;%1&quot;</translation>
    </message>
    <message>
        <source>image input</source>
        <translation>图像输入</translation>
    </message>
    <message>
        <source>query and key norm without weights</source>
        <translation>没有权重的 query 与 key 归一化</translation>
    </message>
    <message>
        <source>a multiple of the %1 key heads</source>
        <translation>%1 个 key 头的倍数</translation>
    </message>
    <message>
        <source>gated attention</source>
        <translation>门控注意力</translation>
    </message>
    <message>
        <source>one multi-token prediction layer is counted, as published checkpoints hold it; config.json does not name it</source>
        <translation>计入一个多词元预测层，因为已发布的检查点包含它；config.json 没有说明</translation>
    </message>
    <message>
        <source>one letter for each of the %1 layers</source>
        <translation>%1 层各一个字母</translation>
    </message>
    <message>
        <source>branches replaced by a linear layer</source>
        <translation>被线性层替换的分支</translation>
    </message>
    <message>
        <source>a factor of hidden_size</source>
        <translation>hidden_size 的倍率</translation>
    </message>
    <message>
        <source>the first Qwen&apos;s attention scaling</source>
        <translation>第一代 Qwen 的注意力缩放</translation>
    </message>
    <message>
        <source>sparse attention</source>
        <translation>稀疏注意力</translation>
    </message>
    <message>
        <source>MiMo V2&apos;s attention</source>
        <translation>MiMo V2 的注意力</translation>
    </message>
    <message>
        <source>Gemma 4&apos;s layers</source>
        <translation>Gemma 4 的层</translation>
    </message>
    <message>
        <source>sparse mixer routing</source>
        <translation>sparse mixer 路由</translation>
    </message>
    <message>
        <source>InternLM2&apos;s order of the fused rows</source>
        <translation>InternLM2 的融合行顺序</translation>
    </message>
    <message>
        <source>Baichuan&apos;s normalized head</source>
        <translation>Baichuan 的归一化输出头</translation>
    </message>
    <message>
        <source>ChatGLM&apos;s rotary layout</source>
        <translation>ChatGLM 的旋转布局</translation>
    </message>
    <message>
        <source>block-sparse attention</source>
        <translation>块稀疏注意力</translation>
    </message>
    <message>
        <source>DBRX&apos;s layers</source>
        <translation>DBRX 的层</translation>
    </message>
    <message>
        <source>several residual streams</source>
        <translation>多条残差流</translation>
    </message>
    <message>
        <source>MiniCPM3&apos;s layers</source>
        <translation>MiniCPM3 的层</translation>
    </message>
    <message>
        <source>%1&apos;s layers</source>
        <translation>%1 的层</translation>
    </message>
    <message>
        <source>Kimi&apos;s delta attention</source>
        <translation>Kimi 的 delta 注意力</translation>
    </message>
    <message>
        <source>Granite&apos;s shared experts</source>
        <translation>Granite 的共享专家</translation>
    </message>
    <message>
        <source>Granite&apos;s windows</source>
        <translation>Granite 的滑动窗口</translation>
    </message>
    <message>
        <source>Griffin&apos;s recurrent layers</source>
        <translation>Griffin 的循环层</translation>
    </message>
    <message>
        <source>LFM2&apos;s experts</source>
        <translation>LFM2 的专家</translation>
    </message>
    <message>
        <source>attention and Mamba side by side</source>
        <translation>注意力与 Mamba 并列</translation>
    </message>
    <message>
        <source>attention heads as experts</source>
        <translation>以注意力头为专家</translation>
    </message>
    <message>
        <source>attention with linear biases</source>
        <translation>带线性偏置的注意力</translation>
    </message>
    <message>
        <source>blocks that layers share</source>
        <translation>层间共享的块</translation>
    </message>
    <message>
        <source>experts that return their input</source>
        <translation>原样返回输入的专家</translation>
    </message>
    <message>
        <source>image and audio input</source>
        <translation>图像和音频输入</translation>
    </message>
    <message>
        <source>learned positions</source>
        <translation>学习得到的位置编码</translation>
    </message>
    <message>
        <source>lightning attention</source>
        <translation>闪电注意力</translation>
    </message>
    <message>
        <source>norms without weights</source>
        <translation>无权重的归一化</translation>
    </message>
    <message>
        <source>the activation xIELU</source>
        <translation>激活函数 xIELU</translation>
    </message>
    <message>
        <source>this variety of Llama (not tried)</source>
        <translation>Llama 的这一变体（未经试验）</translation>
    </message>
    <message>
        <source>no weight_map</source>
        <translation>没有 weight_map</translation>
    </message>
    <message>
        <source>a map from tensors to files</source>
        <translation>从张量到文件的映射</translation>
    </message>
    <message>
        <source>a file name</source>
        <translation>文件名</translation>
    </message>
    <message>
        <source>a file name without folders</source>
        <translation>不含文件夹的文件名</translation>
    </message>
    <message>
        <source>%1 of %2 shards missing (%3)</source>
        <translation>%2 个分片缺少 %1 个（%3）</translation>
    </message>
    <message>
        <source>all files of %1</source>
        <translation>%1 的全部文件</translation>
    </message>
    <message>
        <source>download the missing files</source>
        <translation>请下载缺少的文件</translation>
    </message>
    <message>
        <source>%1 of %2 shards and no %3</source>
        <translation>%2 个分片中的 %1 个，且没有 %3</translation>
    </message>
    <message>
        <source>all shards</source>
        <translation>全部分片</translation>
    </message>
    <message>
        <source>%1 has shape [%2], by the configuration [%3]</source>
        <translation>%1 的形状为 [%2]，按配置应为 [%3]</translation>
    </message>
    <message>
        <source>%1 more tensors differ from the configuration</source>
        <translation>另有 %1 个张量与配置不同</translation>
    </message>
    <message>
        <source>the files lack %1 tensors that the configuration expects: %2</source>
        <translation>文件缺少配置所需的 %1 个张量：%2</translation>
    </message>
    <message>
        <source>the files hold %1 tensors that the configuration does not tell of: %2</source>
        <translation>文件含有配置未说明的 %1 个张量：%2</translation>
    </message>
    <message>
        <source>tensors that do not follow the configuration</source>
        <translation>与配置不符的张量</translation>
    </message>
    <message>
        <source>config.json says %1, the files hold %2</source>
        <translation>config.json 写的是 %1，文件中是 %2</translation>
    </message>
    <message>
        <source>a model folder that can be read</source>
        <translation>可读取的模型文件夹</translation>
    </message>
    <message>
        <source>an empty folder</source>
        <translation>空文件夹</translation>
    </message>
    <message>
        <source>a model folder with config.json</source>
        <translation>含 config.json 的模型文件夹</translation>
    </message>
    <message>
        <source>download the model again</source>
        <translation>请重新下载模型</translation>
    </message>
    <message>
        <source>several GGUF models (%1) and no config.json</source>
        <translation>有多个 GGUF 模型（%1）而没有 config.json</translation>
    </message>
    <message>
        <source>a model folder with config.json, or with one GGUF model</source>
        <translation>含 config.json 或仅含一个 GGUF 模型的模型文件夹</translation>
    </message>
    <message>
        <source>give the .gguf file itself</source>
        <translation>请直接指定 .gguf 文件</translation>
    </message>
    <message>
        <source>an adapter (adapter_config.json) without config.json</source>
        <translation>适配器（adapter_config.json），没有 config.json</translation>
    </message>
    <message>
        <source>a whole model</source>
        <translation>完整的模型</translation>
    </message>
    <message>
        <source>merge the adapter into its base model first</source>
        <translation>请先把适配器合并到基础模型</translation>
    </message>
    <message>
        <source>a model in its maker&apos;s own format (params.json) without config.json</source>
        <translation>厂商自有格式（params.json）的模型，没有 config.json</translation>
    </message>
    <message>
        <source>download the Hugging Face files of the model</source>
        <translation>请下载该模型的 Hugging Face 文件</translation>
    </message>
    <message>
        <source>a tokenizer and no config.json</source>
        <translation>有分词器而没有 config.json</translation>
    </message>
    <message>
        <source>download the model&apos;s other files</source>
        <translation>请下载模型的其他文件</translation>
    </message>
    <message>
        <source>no config.json among %1</source>
        <translation>在 %1 之中没有 config.json</translation>
    </message>
    <message>
        <source>%1 and %2 more</source>
        <translation>%1 及另外 %2 个</translation>
    </message>
    <message>
        <source>is it a folder above or below?</source>
        <translation>是不是上一级或下一级文件夹？</translation>
    </message>
    <message>
        <source>the weights are PyTorch pickles, which are not read: sizes follow the configuration</source>
        <translation>权重是 PyTorch pickle，不读取：按配置计算大小</translation>
    </message>
    <message>
        <source>no weight files in the folder: sizes follow the configuration</source>
        <translation>文件夹中没有权重文件：按配置计算大小</translation>
    </message>
    <message>
        <source>tensor %1 once more (first in %2)</source>
        <translation>张量 %1 再次出现（首次在 %2）</translation>
    </message>
    <message>
        <source>each tensor in one file</source>
        <translation>每个张量只在一个文件中</translation>
    </message>
    <message>
        <source>remove the files that do not belong to the model</source>
        <translation>请移除不属于该模型的文件</translation>
    </message>
    <message>
        <source>the files hold no lm_head: the embedding is taken for it</source>
        <translation>文件没有 lm_head：用嵌入代替</translation>
    </message>
    <message>
        <source>%1 positive divisors</source>
        <translation>%1 个正的除数</translation>
    </message>
    <message>
        <source>%1 and %2 values</source>
        <translation>%1 与 %2 个值</translation>
    </message>
    <message>
        <source>%1 positive divisors each</source>
        <translation>各 %1 个正的除数</translation>
    </message>
    <message>
        <source>%1 has shape [%2], which does not follow the metadata</source>
        <translation>%1 的形状为 [%2]，与元数据不符</translation>
    </message>
    <message>
        <source>tensors whose shapes do not follow the metadata</source>
        <translation>形状与元数据不符的张量</translation>
    </message>
    <message>
        <source>tensor type %1</source>
        <translation>张量类型 %1</translation>
    </message>
    <message>
        <source>an empty name</source>
        <translation>空名称</translation>
    </message>
    <message>
        <source>a config.json, a model folder, a .gguf file or a catalog name</source>
        <translation>config.json、模型文件夹、.gguf 文件或目录中的名称</translation>
    </message>
    <message>
        <source>weights without config.json beside them</source>
        <translation>权重旁边没有 config.json</translation>
    </message>
    <message>
        <source>a model folder</source>
        <translation>模型文件夹</translation>
    </message>
    <message>
        <source>a file that begins %1</source>
        <translation>以 %1 开头的文件</translation>
    </message>
    <message>
        <source>a config.json, a model folder or a .gguf file</source>
        <translation>config.json、模型文件夹或 .gguf 文件</translation>
    </message>
    <message>
        <source>no such file or folder, and no model of this name in the catalog</source>
        <translation>没有这个文件或文件夹，目录中也没有这个名称的模型</translation>
    </message>
    <message>
        <source>a config.json, a model folder, a .gguf file or a catalog name such as Qwen/Qwen2.5-72B-Instruct</source>
        <translation>config.json、模型文件夹、.gguf 文件，或目录中的名称，如 Qwen/Qwen2.5-72B-Instruct</translation>
    </message>
    <message>
        <source>check the spelling</source>
        <translation>请检查拼写</translation>
    </message>
    <message>
        <source>download the model first, or check the spelling</source>
        <translation>请先下载模型，或检查拼写</translation>
    </message>
    <message>
        <source>a list of at most %1 natural numbers</source>
        <translation>最多 %1 个自然数的列表</translation>
    </message>
    <message>
        <source>a natural number</source>
        <translation>自然数</translation>
    </message>
    <message>
        <source>an object with dtype, shape and data_offsets</source>
        <translation>含 dtype、shape 和 data_offsets 的对象</translation>
    </message>
    <message>
        <source>a string such as &quot;BF16&quot;</source>
        <translation>字符串，例如 &quot;BF16&quot;</translation>
    </message>
    <message>
        <source>a begin before the end</source>
        <translation>开头在结尾之前</translation>
    </message>
    <message>
        <source>data up to byte %1 of %2 that the file holds</source>
        <translation>数据到第 %1 字节，而文件有 %2 字节</translation>
    </message>
    <message>
        <source>a complete file</source>
        <translation>完整的文件</translation>
    </message>
    <message>
        <source>tensor %1 has dtype %2, which this reader does not know; it is left out</source>
        <translation>张量 %1 的 dtype 为 %2，本程序不认识；已略过</translation>
    </message>
    <message>
        <source>a shape whose bytes fit the file</source>
        <translation>字节数与文件相符的形状</translation>
    </message>
    <message>
        <source>%1 elements of %2</source>
        <translation>%1 个 %2 元素</translation>
    </message>
    <message>
        <source>an even count: two are stored in a byte</source>
        <translation>偶数：两个存在一个字节里</translation>
    </message>
    <message>
        <source>%1 bytes of data</source>
        <translation>%1 字节的数据</translation>
    </message>
    <message>
        <source>%1 bytes (%2 of shape %3)</source>
        <translation>%1 字节（形状为 %3 的 %2）</translation>
    </message>
    <message>
        <source>the file is damaged; fetch it again</source>
        <translation>文件损坏；请重新获取</translation>
    </message>
    <message>
        <source>tensors %1 and %2 share bytes</source>
        <translation>张量 %1 与 %2 共用字节</translation>
    </message>
    <message>
        <source>data of their own</source>
        <translation>各自的数据</translation>
    </message>
    <message>
        <source>%1 bytes of %2 belong to no tensor</source>
        <translation>%2 的 %1 字节不属于任何张量</translation>
    </message>
    <message>
        <source>a header that begins %1</source>
        <translation>以 %1 开头的文件头</translation>
    </message>
    <message>
        <source>a JSON object of tensors</source>
        <translation>张量的 JSON 对象</translation>
    </message>
    <message>
        <source>is this a safetensors file? fetch it again</source>
        <translation>这是 safetensors 文件吗？请重新获取</translation>
    </message>
    <message>
        <source>lists or objects nested more than 256 deep</source>
        <translation>嵌套超过 256 层的列表或对象</translation>
    </message>
    <message>
        <source>a header with lists or objects nested more than 256 deep</source>
        <translation>文件头含有嵌套超过 256 层的列表或对象</translation>
    </message>
    <message>
        <source>is this the right file? fetch it again</source>
        <translation>文件是否正确？请重新下载</translation>
    </message>
    <message>
        <source>tensor %1 twice</source>
        <translation>张量 %1 出现两次</translation>
    </message>
    <message>
        <source>a safetensors file</source>
        <translation>safetensors 文件</translation>
    </message>
    <message>
        <source>rename it to .gguf</source>
        <translation>请改名为 .gguf</translation>
    </message>
    <message>
        <source>a PyTorch pickle or zip archive</source>
        <translation>PyTorch pickle 或 zip 归档</translation>
    </message>
    <message>
        <source>convert it: save_pretrained(safe_serialization=True)</source>
        <translation>请转换：save_pretrained(safe_serialization=True)</translation>
    </message>
    <message>
        <source>a header length of %1 bytes (the file begins %2)</source>
        <translation>文件头长度为 %1 字节（文件以 %2 开头）</translation>
    </message>
    <message>
        <source>this is not a safetensors file, or it is damaged; fetch it again</source>
        <translation>这不是 safetensors 文件，或已损坏；请重新获取</translation>
    </message>
    <message>
        <source>a header of %1 bytes in a file of %2</source>
        <translation>%2 的文件中有 %1 字节的文件头</translation>
    </message>
    <message>
        <source>parse error at line %1, column %2: %3</source>
        <translation>第 %1 行第 %2 列解析错误：%3</translation>
    </message>
    <message>
        <source>%1 at 1 GiB each</source>
        <translation>%1，每个 1 GiB</translation>
    </message>
    <message>
        <source>attention of a layer has %1 pieces: %2 of %3 devices wait in every layer</source>
        <translation>一层的注意力有 %1 份：每层有 %3 个设备中的 %2 个在等待</translation>
    </message>
    <message>
        <source>no file that can be read</source>
        <translation>无法读取的文件</translation>
    </message>
    <message>
        <source>a start-up log</source>
        <translation>启动日志</translation>
    </message>
    <message>
        <source>a start with %1</source>
        <translation>以 %1 启动</translation>
    </message>
    <message>
        <source>a layout that the plan accepts</source>
        <translation>规划所接受的布局</translation>
    </message>
    <message>
        <source>weights of another size</source>
        <translation>大小不同的权重</translation>
    </message>
    <message>
        <source>weights of another size (%1)</source>
        <translation>大小不同的权重（%1）</translation>
    </message>
    <message>
        <source>those of %1 with %2</source>
        <translation>%1 在 %2 时的权重</translation>
    </message>
    <message>
        <source>is it the log of another model or layout?</source>
        <translation>这是其他模型或布局的日志吗？</translation>
    </message>
    <message>
        <source>a file that cannot be written</source>
        <translation>无法写入的文件</translation>
    </message>
    <message>
        <source>room and permission</source>
        <translation>空间和权限</translation>
    </message>
    <message>
        <source>no line of an engine&apos;s start</source>
        <translation>没有引擎启动的行</translation>
    </message>
    <message>
        <source>a start-up log of vLLM, SGLang or llama.cpp</source>
        <translation>vLLM、SGLang 或 llama.cpp 的启动日志</translation>
    </message>
    <message>
        <source>a log of %1 without memory figures</source>
        <translation>没有内存数据的 %1 日志</translation>
    </message>
    <message>
        <source>lines such as &quot;Model loading took …&quot; or &quot;GPU KV cache size: …&quot;</source>
        <translation>类似 &quot;Model loading took …&quot; 或 &quot;GPU KV cache size: …&quot; 的行</translation>
    </message>
    <message>
        <source>log at the level INFO, from the start on</source>
        <translation>从启动开始以 INFO 级别记录日志</translation>
    </message>
    <message>
        <source>start-up log of %1</source>
        <translation>%1 的启动日志</translation>
    </message>
    <message>
        <source>vision columns</source>
        <translation>视觉列</translation>
    </message>
    <message>
        <source>%1 %2 do not divide by %3 (%4); the workers stop with: &quot;%5 is not divisible by %6&quot;</source>
        <translation>%1 %2不能被 %3 整除（%4）；工作进程停止并报告：&quot;%5 is not divisible by %6&quot;</translation>
    </message>
    <message>
        <source>--mm-encoder-tp-mode data holds the vision tower whole on each rank</source>
        <translation>--mm-encoder-tp-mode data 在每个 rank 上完整保存视觉塔</translation>
    </message>
    <message>
        <source>auto, float32, float16, bfloat16, fp8_e4m3 or fp8_e5m2</source>
        <translation>auto、float32、float16、bfloat16、fp8_e4m3 或 fp8_e5m2</translation>
    </message>
    <message>
        <source>auto, float32, float16, bfloat16, fp8_e4m3, fp8_e5m2 or int8</source>
        <translation>auto、float32、float16、bfloat16、fp8_e4m3、fp8_e5m2 或 int8</translation>
    </message>
    <message>
        <source>int8 on GPUs</source>
        <translation>GPU 上的 int8</translation>
    </message>
    <message>
        <source>int8 caches run on host devices</source>
        <translation>int8 缓存只在主机设备上运行</translation>
    </message>
    <message>
        <source>modelled: bandwidth, compute and links of the catalog at shares that timed kernels reach; nine of ten timed cases of this kind lie within %1 % (between tokens) and %2 % (a prompt)</source>
        <translation>模型估算：按目录中的带宽、算力和互连，取实测内核能达到的比例；此类实测中十分之九的误差在 %1 %（词元之间）和 %2 %（提示）以内</translation>
    </message>
    <message>
        <source>this family&apos;s linear attention</source>
        <translation>该系列的线性注意力</translation>
    </message>
    <message>
        <source>biases of latent attention</source>
        <translation>潜在注意力的偏置</translation>
    </message>
    <message>
        <source>biases of gated queries</source>
        <translation>门控 query 的偏置</translation>
    </message>
    <message>
        <source>%1 quantization of %2 bits</source>
        <translation>%2 位的 %1 量化</translation>
    </message>
    <message>
        <source>%1 weights that must be transposed (%2)</source>
        <translation>必须转置的 %1 权重（%2）</translation>
    </message>
    <message>
        <source>nothing (an empty file)</source>
        <translation>空（空文件）</translation>
    </message>
    <message>
        <source>neither %1.vocab_size nor tokenizer.ggml.tokens</source>
        <translation>既没有 %1.vocab_size 也没有 tokenizer.ggml.tokens</translation>
    </message>
    <message>
        <source>groups of the %1 experts, enough of them for %2 a token</source>
        <translation>%1 个专家的分组，且足够每词元 %2 个</translation>
    </message>
    <message>
        <source>more than the %1 rotated elements</source>
        <translation>多于 %1 个旋转元素</translation>
    </message>
    <message>
        <source>the model does not fit</source>
        <translation>模型放不下</translation>
    </message>
    <message>
        <source>one of %1</source>
        <translation>%1 之一</translation>
    </message>
    <message>
        <source>none: the model is quantized already (%1)</source>
        <translation>不设置：模型已经量化（%1）</translation>
    </message>
    <message>
        <source>open the 16-bit checkpoint</source>
        <translation>请打开 16 位检查点</translation>
    </message>
    <message>
        <source>planned as if quantized to %1: no such checkpoint was opened</source>
        <translation>按量化为 %1 来规划：没有打开这样的检查点</translation>
    </message>
    <message>
        <source>a model with a config.json</source>
        <translation>有 config.json 的模型</translation>
    </message>
    <message>
        <source>a GGUF can be planned as another GGUF type</source>
        <translation>GGUF 可以按其他 GGUF 类型来规划</translation>
    </message>
    <message>
        <source>a layout as `plan --format json` prints it</source>
        <translation>`plan --format json` 输出的布局</translation>
    </message>
    <message>
        <source>NVML: found no libnvidia-ml.so.1, expected the NVIDIA driver&apos;s library; GPUs cannot be watched without it</source>
        <translation>NVML：没有找到 libnvidia-ml.so.1，应有 NVIDIA 驱动的库；没有它无法查看 GPU</translation>
    </message>
    <message>
        <source>/dev/shm is too small for the ranks&apos; exchange</source>
        <translation>/dev/shm 太小，rank 之间无法交换数据</translation>
    </message>
    <message>
        <source>a container has 64 MiB of /dev/shm unless told otherwise; NCCL needs several MiB for each channel and pair of ranks</source>
        <translation>容器的 /dev/shm 默认只有 64 MiB；NCCL 的每个通道和每对 rank 需要数 MiB</translation>
    </message>
    <message>
        <source>docker run --shm-size 16g (or --ipc=host)</source>
        <translation>docker run --shm-size 16g（或 --ipc=host）</translation>
    </message>
    <message>
        <source>in Kubernetes an emptyDir of medium Memory at /dev/shm</source>
        <translation>在 Kubernetes 中，把 Memory 介质的 emptyDir 挂载到 /dev/shm</translation>
    </message>
    <message>
        <source>/dev/shm is full</source>
        <translation>/dev/shm 已满</translation>
    </message>
    <message>
        <source>a container has 64 MiB of /dev/shm unless told otherwise</source>
        <translation>容器的 /dev/shm 默认只有 64 MiB</translation>
    </message>
    <message>
        <source>a shared mapping could not be filled, most often /dev/shm</source>
        <translation>共享映射无法写入，多半是 /dev/shm</translation>
    </message>
    <message>
        <source>&quot;Bus error&quot; at the start of several ranks means that /dev/shm is full</source>
        <translation>多个 rank 启动时出现 &quot;Bus error&quot;，说明 /dev/shm 已满</translation>
    </message>
    <message>
        <source>a collective did not end</source>
        <translation>一个集合通信没有结束</translation>
    </message>
    <message>
        <source>one rank waits for another that hangs or is gone: peer-to-peer through an IOMMU, a dead worker, or a much slower one</source>
        <translation>一个 rank 在等待另一个卡住或已退出的 rank：经 IOMMU 的点对点传输、已退出的工作进程，或慢得多的 rank</translation>
    </message>
    <message>
        <source>look in the log for the rank that failed first</source>
        <translation>在日志中找最先失败的 rank</translation>
    </message>
    <message>
        <source>NCCL_P2P_DISABLE=1 to test whether peer-to-peer is the cause</source>
        <translation>用 NCCL_P2P_DISABLE=1 检验是否为点对点传输所致</translation>
    </message>
    <message>
        <source>turn off ACS or the IOMMU in the firmware</source>
        <translation>在固件中关闭 ACS 或 IOMMU</translation>
    </message>
    <message>
        <source>NCCL failed</source>
        <translation>NCCL 失败</translation>
    </message>
    <message>
        <source>the line before names the call; NCCL_DEBUG=INFO names the cause</source>
        <translation>前一行写有出错的调用；NCCL_DEBUG=INFO 会写出原因</translation>
    </message>
    <message>
        <source>NCCL_DEBUG=INFO and read the first WARN line</source>
        <translation>设 NCCL_DEBUG=INFO 并查看第一条 WARN</translation>
    </message>
    <message>
        <source>NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1 to find the link that fails</source>
        <translation>用 NCCL_P2P_DISABLE=1、NCCL_IB_DISABLE=1 找出失败的连接</translation>
    </message>
    <message>
        <source>a system call below NCCL failed</source>
        <translation>NCCL 之下的一个系统调用失败</translation>
    </message>
    <message>
        <source>the line &quot;Last error&quot; names it</source>
        <translation>&quot;Last error&quot; 一行写有原因</translation>
    </message>
    <message>
        <source>read the line &quot;Last error&quot;</source>
        <translation>查看 &quot;Last error&quot; 一行</translation>
    </message>
    <message>
        <source>check /dev/shm, network interfaces and ulimit -l</source>
        <translation>检查 /dev/shm、网络接口和 ulimit -l</translation>
    </message>
    <message>
        <source>a CUDA call below NCCL failed</source>
        <translation>NCCL 之下的一个 CUDA 调用失败</translation>
    </message>
    <message>
        <source>driver, peer-to-peer or memory</source>
        <translation>驱动、点对点传输或内存</translation>
    </message>
    <message>
        <source>two ranks were given the same GPU</source>
        <translation>两个 rank 分到了同一个 GPU</translation>
    </message>
    <message>
        <source>NCCL takes one rank a GPU</source>
        <translation>NCCL 的每个 GPU 只能有一个 rank</translation>
    </message>
    <message>
        <source>fewer ranks, or CUDA_VISIBLE_DEVICES with as many GPUs as ranks</source>
        <translation>减少 rank，或让 CUDA_VISIBLE_DEVICES 中的 GPU 与 rank 一样多</translation>
    </message>
    <message>
        <source>the ranks of another machine were not reached</source>
        <translation>连接不到另一台机器的 rank</translation>
    </message>
    <message>
        <source>the first machine&apos;s address or port is not open</source>
        <translation>第一台机器的地址或端口没有开放</translation>
    </message>
    <message>
        <source>the first machine&apos;s address as the others reach it</source>
        <translation>使用其他机器能访问到的第一台机器的地址</translation>
    </message>
    <message>
        <source>open the port in the firewall</source>
        <translation>在防火墙中开放该端口</translation>
    </message>
    <message>
        <source>the port is taken</source>
        <translation>端口已被占用</translation>
    </message>
    <message>
        <source>another server, or an orphan of this one, listens there</source>
        <translation>另一个服务，或本服务遗留的进程，正在监听该端口</translation>
    </message>
    <message>
        <source>--port with another number</source>
        <translation>用 --port 换一个端口号</translation>
    </message>
    <message>
        <source>end the old process: ss -ltnp shows it</source>
        <translation>结束旧进程：ss -ltnp 可以查到</translation>
    </message>
    <message>
        <source>the kernel ended a process: main memory was full</source>
        <translation>内核结束了一个进程：主内存已满</translation>
    </message>
    <message>
        <source>ranks read weights into main memory before the GPU has them, all at once</source>
        <translation>各 rank 在交给 GPU 之前同时把权重读入主内存</translation>
    </message>
    <message>
        <source>load one rank after another (--max-parallel-loading-workers 1), or from memory-mapped safetensors</source>
        <translation>逐个 rank 载入（--max-parallel-loading-workers 1），或从内存映射的 safetensors 载入</translation>
    </message>
    <message>
        <source>more memory or swap, a higher limit of the container</source>
        <translation>增加内存或交换空间，提高容器的上限</translation>
    </message>
    <message>
        <source>the kernel ended a worker: main memory was full</source>
        <translation>内核结束了一个工作进程：主内存已满</translation>
    </message>
    <message>
        <source>load one rank after another, or from memory-mapped safetensors</source>
        <translation>逐个 rank 载入，或从内存映射的 safetensors 载入</translation>
    </message>
    <message>
        <source>main memory or the container&apos;s limit was reached</source>
        <translation>达到了主内存或容器的上限</translation>
    </message>
    <message>
        <source>load one rank after another</source>
        <translation>逐个 rank 载入</translation>
    </message>
    <message>
        <source>a process was ended from outside (SIGKILL)</source>
        <translation>一个进程被外部结束（SIGKILL）</translation>
    </message>
    <message>
        <source>most often the kernel, because main memory was full: dmesg tells</source>
        <translation>多半是内核，因为主内存已满：dmesg 会写出</translation>
    </message>
    <message>
        <source>more memory, or load one rank after another</source>
        <translation>增加内存，或逐个 rank 载入</translation>
    </message>
    <message>
        <source>a worker of Ray was ended from outside</source>
        <translation>Ray 的一个工作进程被外部结束</translation>
    </message>
    <message>
        <source>most often the kernel, because main memory was full while ranks read weights</source>
        <translation>多半是内核，因为各 rank 读取权重时主内存已满</translation>
    </message>
    <message>
        <source>more memory or swap; load one rank after another</source>
        <translation>增加内存或交换空间；逐个 rank 载入</translation>
    </message>
    <message>
        <source>main memory is full</source>
        <translation>主内存已满</translation>
    </message>
    <message>
        <source>an allocation in main memory failed</source>
        <translation>主内存中的一次分配失败</translation>
    </message>
    <message>
        <source>more memory or swap, or fewer ranks that load at once</source>
        <translation>增加内存或交换空间，或减少同时载入的 rank</translation>
    </message>
    <message>
        <source>the limit of open files was reached</source>
        <translation>达到了打开文件数的上限</translation>
    </message>
    <message>
        <source>each connection and shard is a file</source>
        <translation>每个连接和每个分片都是一个文件</translation>
    </message>
    <message>
        <source>a disk is full</source>
        <translation>磁盘已满</translation>
    </message>
    <message>
        <source>a download, a cache of compiled kernels or a log found no room</source>
        <translation>下载、编译好的内核的缓存或日志没有空间</translation>
    </message>
    <message>
        <source>free the disk, or set HF_HOME and the compile cache to another one</source>
        <translation>清理磁盘，或把 HF_HOME 和编译缓存放到另一个磁盘</translation>
    </message>
    <message>
        <source>the CUDA library and the kernel driver do not belong together</source>
        <translation>CUDA 库与内核驱动不匹配</translation>
    </message>
    <message>
        <source>user-space CUDA (often the forward-compatibility libcuda of an image) does not match the kernel driver</source>
        <translation>用户态 CUDA（常常是镜像中的前向兼容 libcuda）与内核驱动不匹配</translation>
    </message>
    <message>
        <source>update the driver</source>
        <translation>更新驱动</translation>
    </message>
    <message>
        <source>take the compat libcuda off the library path (LD_LIBRARY_PATH, /usr/local/cuda/compat)</source>
        <translation>从库路径中去掉 compat 的 libcuda（LD_LIBRARY_PATH、/usr/local/cuda/compat）</translation>
    </message>
    <message>
        <source>take the compat libcuda off the library path</source>
        <translation>从库路径中去掉 compat 的 libcuda</translation>
    </message>
    <message>
        <source>forward compatibility is for data-centre cards only</source>
        <translation>前向兼容只支持数据中心显卡</translation>
    </message>
    <message>
        <source>the image brings a newer libcuda than the driver, which GeForce cards do not take</source>
        <translation>镜像带有比驱动更新的 libcuda，GeForce 显卡不支持</translation>
    </message>
    <message>
        <source>an image for the installed CUDA version</source>
        <translation>使用与已安装的 CUDA 版本相符的镜像</translation>
    </message>
    <message>
        <source>the driver was updated and its module was not reloaded</source>
        <translation>驱动更新后没有重新加载模块</translation>
    </message>
    <message>
        <source>NVML of the new version talks to the module of the old one</source>
        <translation>新版本的 NVML 在与旧版本的模块通信</translation>
    </message>
    <message>
        <source>restart the machine, or reload the nvidia modules</source>
        <translation>重启机器，或重新加载 nvidia 模块</translation>
    </message>
    <message>
        <source>the driver is older than the program&apos;s CUDA</source>
        <translation>驱动比程序的 CUDA 旧</translation>
    </message>
    <message>
        <source>the program was built for a newer CUDA than the driver knows</source>
        <translation>程序是为比驱动所知更新的 CUDA 编译的</translation>
    </message>
    <message>
        <source>an engine&apos;s build for the installed CUDA version</source>
        <translation>使用与已安装的 CUDA 版本相符的引擎版本</translation>
    </message>
    <message>
        <source>the process sees no GPU</source>
        <translation>进程看不到 GPU</translation>
    </message>
    <message>
        <source>CUDA_VISIBLE_DEVICES is empty or wrong, or the container has none</source>
        <translation>CUDA_VISIBLE_DEVICES 为空或有误，或容器中没有 GPU</translation>
    </message>
    <message>
        <source>docker run --gpus all with the NVIDIA container toolkit</source>
        <translation>使用 NVIDIA 容器工具包并加 docker run --gpus all</translation>
    </message>
    <message>
        <source>check CUDA_VISIBLE_DEVICES and nvidia-smi inside the container</source>
        <translation>在容器内检查 CUDA_VISIBLE_DEVICES 和 nvidia-smi</translation>
    </message>
    <message>
        <source>there is no driver</source>
        <translation>没有驱动</translation>
    </message>
    <message>
        <source>neither on the machine nor in the container</source>
        <translation>机器上和容器中都没有</translation>
    </message>
    <message>
        <source>install the driver; in containers the NVIDIA container toolkit and --gpus all</source>
        <translation>安装驱动；在容器中需要 NVIDIA 容器工具包和 --gpus all</translation>
    </message>
    <message>
        <source>no driver, or a container without GPUs</source>
        <translation>没有驱动，或容器没有 GPU</translation>
    </message>
    <message>
        <source>Docker has no access to GPUs</source>
        <translation>Docker 无法访问 GPU</translation>
    </message>
    <message>
        <source>the NVIDIA container toolkit is missing</source>
        <translation>缺少 NVIDIA 容器工具包</translation>
    </message>
    <message>
        <source>install nvidia-container-toolkit and restart Docker</source>
        <translation>安装 nvidia-container-toolkit 并重启 Docker</translation>
    </message>
    <message>
        <source>the driver&apos;s library is missing</source>
        <translation>缺少驱动的库</translation>
    </message>
    <message>
        <source>install the driver</source>
        <translation>安装驱动</translation>
    </message>
    <message>
        <source>a GPU was named that is not there</source>
        <translation>指定了不存在的 GPU</translation>
    </message>
    <message>
        <source>CUDA_VISIBLE_DEVICES renumbers: the process counts from 0</source>
        <translation>CUDA_VISIBLE_DEVICES 会重新编号：进程从 0 开始计数</translation>
    </message>
    <message>
        <source>as many ranks as visible GPUs</source>
        <translation>rank 数与可见 GPU 数相同</translation>
    </message>
    <message>
        <source>CUDA_DEVICE_ORDER=PCI_BUS_ID so that numbers are those of nvidia-smi</source>
        <translation>设 CUDA_DEVICE_ORDER=PCI_BUS_ID，使编号与 nvidia-smi 一致</translation>
    </message>
    <message>
        <source>CUDA_VISIBLE_DEVICES holds an UUID, which this engine does not read</source>
        <translation>CUDA_VISIBLE_DEVICES 中是 UUID，此引擎不能读取</translation>
    </message>
    <message>
        <source>it takes numbers</source>
        <translation>它只接受编号</translation>
    </message>
    <message>
        <source>numbers in place of UUIDs, with CUDA_DEVICE_ORDER=PCI_BUS_ID</source>
        <translation>用编号代替 UUID，并设 CUDA_DEVICE_ORDER=PCI_BUS_ID</translation>
    </message>
    <message>
        <source>CUDA_VISIBLE_DEVICES holds a MIG id, which this engine does not read</source>
        <translation>CUDA_VISIBLE_DEVICES 中是 MIG 标识，此引擎不能读取</translation>
    </message>
    <message>
        <source>numbers in place of ids</source>
        <translation>用编号代替标识</translation>
    </message>
    <message>
        <source>a GPU left the bus (Xid 79)</source>
        <translation>一个 GPU 从总线上掉线（Xid 79）</translation>
    </message>
    <message>
        <source>power, heat or the slot</source>
        <translation>供电、温度或插槽</translation>
    </message>
    <message>
        <source>check power supply, cables and temperature</source>
        <translation>检查电源、线缆和温度</translation>
    </message>
    <message>
        <source>a lower power limit: nvidia-smi -pl</source>
        <translation>降低功率上限：nvidia-smi -pl</translation>
    </message>
    <message>
        <source>restart the machine</source>
        <translation>重启机器</translation>
    </message>
    <message>
        <source>a GPU&apos;s memory is faulty</source>
        <translation>一个 GPU 的内存有故障</translation>
    </message>
    <message>
        <source>an error that ECC cannot correct</source>
        <translation>出现了 ECC 无法纠正的错误</translation>
    </message>
    <message>
        <source>nvidia-smi -q -d ECC; reset or replace the card</source>
        <translation>nvidia-smi -q -d ECC；重置或更换显卡</translation>
    </message>
    <message>
        <source>the driver reports a fault of a GPU</source>
        <translation>驱动报告了一个 GPU 的故障</translation>
    </message>
    <message>
        <source>the number behind Xid says which</source>
        <translation>Xid 后面的编号说明是哪一种</translation>
    </message>
    <message>
        <source>look the number up in NVIDIA&apos;s list of Xid errors</source>
        <translation>在 NVIDIA 的 Xid 错误列表中查该编号</translation>
    </message>
    <message>
        <source>check power and temperature</source>
        <translation>检查供电和温度</translation>
    </message>
    <message>
        <source>the build has no code for this GPU</source>
        <translation>程序中没有适合此 GPU 的代码</translation>
    </message>
    <message>
        <source>too old a card, or one newer than the build</source>
        <translation>显卡太旧，或比程序更新</translation>
    </message>
    <message>
        <source>a build for this compute capability</source>
        <translation>使用支持此计算能力的版本</translation>
    </message>
    <message>
        <source>an older or newer version of the engine</source>
        <translation>使用更旧或更新的引擎版本</translation>
    </message>
    <message>
        <source>a kernel read or wrote beyond its memory</source>
        <translation>一个内核读写越界</translation>
    </message>
    <message>
        <source>a fault of a kernel, often with one quantization or attention backend; rarely the card</source>
        <translation>内核的缺陷，常与某种量化或注意力后端有关；很少是显卡的问题</translation>
    </message>
    <message>
        <source>another attention backend or --enforce-eager to find the kernel</source>
        <translation>换一个注意力后端，或用 --enforce-eager 找出出错的内核</translation>
    </message>
    <message>
        <source>CUDA_LAUNCH_BLOCKING=1 names the call</source>
        <translation>CUDA_LAUNCH_BLOCKING=1 会指出出错的调用</translation>
    </message>
    <message>
        <source>another version of the engine</source>
        <translation>使用另一个引擎版本</translation>
    </message>
    <message>
        <source>the query heads do not divide by TP</source>
        <translation>查询头数不能被 TP 整除</translation>
    </message>
    <message>
        <source>each rank takes the same number of heads</source>
        <translation>每个 rank 分到同样多的头</translation>
    </message>
    <message>
        <source>headroom-engine plan MODEL shows the sizes that work</source>
        <translation>headroom-engine plan MODEL 会列出可行的大小</translation>
    </message>
    <message>
        <source>TP cuts an FP8 block</source>
        <translation>TP 切开了 FP8 块</translation>
    </message>
    <message>
        <source>a rank&apos;s share of the columns is no multiple of the block</source>
        <translation>一个 rank 分到的列数不是块大小的倍数</translation>
    </message>
    <message>
        <source>half the TP, with PP for the other GPUs</source>
        <translation>TP 减半，其余 GPU 用于 PP</translation>
    </message>
    <message>
        <source>TP cuts a quantization group</source>
        <translation>TP 切开了量化组</translation>
    </message>
    <message>
        <source>a rank&apos;s share of the columns is no multiple of the group</source>
        <translation>一个 rank 分到的列数不是组大小的倍数</translation>
    </message>
    <message>
        <source>a checkpoint with smaller groups or padded columns</source>
        <translation>使用组更小或列已填充的检查点</translation>
    </message>
    <message>
        <source>a width does not divide by TP</source>
        <translation>某个宽度不能被 TP 整除</translation>
    </message>
    <message>
        <source>PP in place of TP</source>
        <translation>用 PP 代替 TP</translation>
    </message>
    <message>
        <source>the KV heads do not divide by TP</source>
        <translation>KV 头数不能被 TP 整除</translation>
    </message>
    <message>
        <source>each rank takes the same number of KV heads</source>
        <translation>每个 rank 分到同样多的 KV 头</translation>
    </message>
    <message>
        <source>a TP that divides the KV heads, PP for the other GPUs</source>
        <translation>选择能整除 KV 头数的 TP，其余 GPU 用于 PP</translation>
    </message>
    <message>
        <source>TP is no multiple of the KV heads</source>
        <translation>TP 不是 KV 头数的倍数</translation>
    </message>
    <message>
        <source>each KV head is copied the same number of times</source>
        <translation>每个 KV 头的副本数相同</translation>
    </message>
    <message>
        <source>a TP that is a multiple of the KV heads, or PP</source>
        <translation>选择是 KV 头数倍数的 TP，或使用 PP</translation>
    </message>
    <message>
        <source>the layout needs more GPUs than are visible</source>
        <translation>布局需要的 GPU 多于可见的 GPU</translation>
    </message>
    <message>
        <source>smaller TP or PP</source>
        <translation>减小 TP 或 PP</translation>
    </message>
    <message>
        <source>--nnodes for several machines</source>
        <translation>多台机器时使用 --nnodes</translation>
    </message>
    <message>
        <source>check CUDA_VISIBLE_DEVICES</source>
        <translation>检查 CUDA_VISIBLE_DEVICES</translation>
    </message>
    <message>
        <source>Ray has not as many GPUs as the layout needs</source>
        <translation>Ray 的 GPU 少于布局所需</translation>
    </message>
    <message>
        <source>machines are missing in its cluster</source>
        <translation>它的集群中缺少机器</translation>
    </message>
    <message>
        <source>ray status shows what is there; start Ray on the other machines</source>
        <translation>ray status 会列出现有的机器；在其他机器上启动 Ray</translation>
    </message>
    <message>
        <source>SGLang wants equal free memory on TP ranks</source>
        <translation>SGLang 要求各 TP rank 的空闲内存相等</translation>
    </message>
    <message>
        <source>one GPU has less than nine tenths of another&apos;s free memory</source>
        <translation>一个 GPU 的空闲内存不到另一个的十分之九</translation>
    </message>
    <message>
        <source>end other programs on that GPU</source>
        <translation>结束该 GPU 上的其他程序</translation>
    </message>
    <message>
        <source>equal cards, or SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0</source>
        <translation>使用相同的显卡，或设 SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK=0</translation>
    </message>
    <message>
        <source>this model has no pipeline stages in this engine</source>
        <translation>此引擎中该模型不支持流水线阶段</translation>
    </message>
    <message>
        <source>its class lacks the interface</source>
        <translation>它的类缺少该接口</translation>
    </message>
    <message>
        <source>PP=1 with TP or replicas</source>
        <translation>PP=1，配合 TP 或副本</translation>
    </message>
    <message>
        <source>weights and activations leave nothing for the KV cache</source>
        <translation>权重和激活没有给 KV 缓存留下空间</translation>
    </message>
    <message>
        <source>utilization x memory is less than weights, activation peak and graphs together</source>
        <translation>利用率 x 内存小于权重、激活峰值与图之和</translation>
    </message>
    <message>
        <source>raise --gpu-memory-utilization if the GPU is otherwise free</source>
        <translation>如果 GPU 没有其他用途，提高 --gpu-memory-utilization</translation>
    </message>
    <message>
        <source>smaller --max-num-seqs and --max-num-batched-tokens lower the peak</source>
        <translation>减小 --max-num-seqs 和 --max-num-batched-tokens 可降低峰值</translation>
    </message>
    <message>
        <source>more ranks, or a quantized checkpoint</source>
        <translation>增加 rank，或使用量化的检查点</translation>
    </message>
    <message>
        <source>weights leave nothing for the KV cache</source>
        <translation>权重没有给 KV 缓存留下空间</translation>
    </message>
    <message>
        <source>the static share is less than the weights</source>
        <translation>静态份额小于权重</translation>
    </message>
    <message>
        <source>raise --mem-fraction-static</source>
        <translation>提高 --mem-fraction-static</translation>
    </message>
    <message>
        <source>one request of the maximum length does not fit in the KV cache</source>
        <translation>KV 缓存放不下一个最大长度的请求</translation>
    </message>
    <message>
        <source>raise --gpu-memory-utilization</source>
        <translation>提高 --gpu-memory-utilization</translation>
    </message>
    <message>
        <source>--kv-cache-dtype fp8 doubles the tokens</source>
        <translation>--kv-cache-dtype fp8 使词元数加倍</translation>
    </message>
    <message>
        <source>more ranks</source>
        <translation>增加 rank</translation>
    </message>
    <message>
        <source>other programs hold part of the GPU</source>
        <translation>其他程序占用了 GPU 的一部分</translation>
    </message>
    <message>
        <source>nvidia-smi shows what holds the rest: end it</source>
        <translation>nvidia-smi 会列出占用者：结束它</translation>
    </message>
    <message>
        <source>a GPU ran out of memory</source>
        <translation>一个 GPU 的内存不足</translation>
    </message>
    <message>
        <source>this GPU has no bfloat16</source>
        <translation>此 GPU 不支持 bfloat16</translation>
    </message>
    <message>
        <source>it came with compute capability 8.0</source>
        <translation>它从计算能力 8.0 开始支持</translation>
    </message>
    <message>
        <source>--dtype float16 (float32 for families that do not run in it)</source>
        <translation>--dtype float16（不能用它运行的模型系列用 float32）</translation>
    </message>
    <message>
        <source>this family does not run in float16</source>
        <translation>该模型系列不能用 float16 运行</translation>
    </message>
    <message>
        <source>its activations leave the range of the type</source>
        <translation>它的激活超出该类型的范围</translation>
    </message>
    <message>
        <source>--dtype bfloat16, or float32 below compute capability 8.0</source>
        <translation>--dtype bfloat16，计算能力低于 8.0 时用 float32</translation>
    </message>
    <message>
        <source>this GPU has no FP8</source>
        <translation>此 GPU 不支持 FP8</translation>
    </message>
    <message>
        <source>kernels for FP8 need compute capability 8.9</source>
        <translation>FP8 内核需要计算能力 8.9</translation>
    </message>
    <message>
        <source>a weight-only kernel (Marlin), a 16-bit, AWQ or GPTQ checkpoint</source>
        <translation>使用仅权重量化的内核（Marlin），或 16 位、AWQ、GPTQ 检查点</translation>
    </message>
    <message>
        <source>an Ada, Hopper or newer GPU</source>
        <translation>使用 Ada、Hopper 或更新的 GPU</translation>
    </message>
    <message>
        <source>this version does not know the checkpoint&apos;s quantization</source>
        <translation>此版本不认识该检查点的量化方式</translation>
    </message>
    <message>
        <source>the line lists those it knows</source>
        <translation>该行列出了它所认识的方式</translation>
    </message>
    <message>
        <source>an earlier version of the engine, or another quantization of the model</source>
        <translation>使用更早的引擎版本，或该模型的另一种量化</translation>
    </message>
    <message>
        <source>--quantization and the checkpoint disagree</source>
        <translation>--quantization 与检查点不一致</translation>
    </message>
    <message>
        <source>the checkpoint says how it was made</source>
        <translation>检查点写明了它的量化方式</translation>
    </message>
    <message>
        <source>leave --quantization out</source>
        <translation>去掉 --quantization</translation>
    </message>
    <message>
        <source>no attention kernel fits this GPU and model</source>
        <translation>没有适合此 GPU 和模型的注意力内核</translation>
    </message>
    <message>
        <source>head size, type or compute capability</source>
        <translation>头的大小、类型或计算能力</translation>
    </message>
    <message>
        <source>a newer GPU, or another engine</source>
        <translation>使用更新的 GPU，或另一个引擎</translation>
    </message>
    <message>
        <source>--dtype or --kv-cache-dtype of another width</source>
        <translation>使用另一种宽度的 --dtype 或 --kv-cache-dtype</translation>
    </message>
    <message>
        <source>a weight file is a Git LFS pointer, not the weights</source>
        <translation>一个权重文件是 Git LFS 指针，而不是权重</translation>
    </message>
    <message>
        <source>130 bytes of text stand in its place</source>
        <translation>文件中只有 130 字节的文本</translation>
    </message>
    <message>
        <source>git lfs pull, or download the file itself</source>
        <translation>git lfs pull，或下载文件本身</translation>
    </message>
    <message>
        <source>a safetensors file does not begin with a header</source>
        <translation>一个 safetensors 文件的开头不是文件头</translation>
    </message>
    <message>
        <source>most often a Git LFS pointer or an error page saved as the file</source>
        <translation>多半是 Git LFS 指针，或被存成文件的错误页面</translation>
    </message>
    <message>
        <source>look at its size and first bytes; git lfs pull, or download again</source>
        <translation>查看它的大小和开头的字节；git lfs pull，或重新下载</translation>
    </message>
    <message>
        <source>a safetensors file is cut off</source>
        <translation>一个 safetensors 文件不完整</translation>
    </message>
    <message>
        <source>its header promises more bytes than it has</source>
        <translation>它的文件头所声明的字节多于文件的字节</translation>
    </message>
    <message>
        <source>a GGUF file is cut off</source>
        <translation>一个 GGUF 文件不完整</translation>
    </message>
    <message>
        <source>a tensor lies behind its end: a broken download, or one raw part (…part1of2) of several</source>
        <translation>有张量位于文件末尾之后：下载中断，或只是多个原始部分（…part1of2）中的一个</translation>
    </message>
    <message>
        <source>put raw parts together first: cat model.gguf.part* &gt; model.gguf</source>
        <translation>先把原始部分合并：cat model.gguf.part* &gt; model.gguf</translation>
    </message>
    <message>
        <source>a part of the GGUF is missing</source>
        <translation>缺少 GGUF 的一个部分</translation>
    </message>
    <message>
        <source>all parts stand in one folder</source>
        <translation>所有部分放在同一个文件夹中</translation>
    </message>
    <message>
        <source>download the other parts</source>
        <translation>下载其他部分</translation>
    </message>
    <message>
        <source>the GGUF uses a tensor type that this version does not know</source>
        <translation>GGUF 使用了此版本不认识的张量类型</translation>
    </message>
    <message>
        <source>a newer llama.cpp, or another quantization of the model</source>
        <translation>使用更新的 llama.cpp，或该模型的另一种量化</translation>
    </message>
    <message>
        <source>the file is no GGUF</source>
        <translation>该文件不是 GGUF</translation>
    </message>
    <message>
        <source>its first four bytes are not &quot;GGUF&quot;: a Git LFS pointer, an error page or a broken download</source>
        <translation>它的前四个字节不是 &quot;GGUF&quot;：是 Git LFS 指针、错误页面或中断的下载</translation>
    </message>
    <message>
        <source>look at its size and first bytes; download again</source>
        <translation>查看它的大小和开头的字节；重新下载</translation>
    </message>
    <message>
        <source>its first four bytes are not &quot;GGUF&quot;</source>
        <translation>它的前四个字节不是 &quot;GGUF&quot;</translation>
    </message>
    <message>
        <source>the model&apos;s name is not known</source>
        <translation>模型名称未知</translation>
    </message>
    <message>
        <source>a wrong name, or one that needs a login</source>
        <translation>名称有误，或需要登录</translation>
    </message>
    <message>
        <source>check the spelling; log in for private models</source>
        <translation>检查拼写；私有模型需要登录</translation>
    </message>
    <message>
        <source>neither a folder here nor a model of the hub</source>
        <translation>既不是本地文件夹，也不是 hub 上的模型</translation>
    </message>
    <message>
        <source>check the path or the spelling</source>
        <translation>检查路径或拼写</translation>
    </message>
    <message>
        <source>the model needs its licence accepted</source>
        <translation>该模型需要先接受许可</translation>
    </message>
    <message>
        <source>and a login of the account that accepted it</source>
        <translation>并以接受许可的账号登录</translation>
    </message>
    <message>
        <source>accept it on the model&apos;s page, then log in</source>
        <translation>在模型页面上接受许可，然后登录</translation>
    </message>
    <message>
        <source>the model needs a login</source>
        <translation>该模型需要登录</translation>
    </message>
    <message>
        <source>the hub refused the download</source>
        <translation>hub 拒绝了下载</translation>
    </message>
    <message>
        <source>log in with an account that may read it</source>
        <translation>用有权读取的账号登录</translation>
    </message>
    <message>
        <source>the hub was not asked: offline mode is on</source>
        <translation>没有访问 hub：离线模式已打开</translation>
    </message>
    <message>
        <source>and the model is not in the local cache</source>
        <translation>而且模型不在本地缓存中</translation>
    </message>
    <message>
        <source>download the model first, or unset HF_HUB_OFFLINE</source>
        <translation>先下载模型，或取消 HF_HUB_OFFLINE</translation>
    </message>
    <message>
        <source>the hub was not reached</source>
        <translation>连接不到 hub</translation>
    </message>
    <message>
        <source>download the model first, or check the network and proxy</source>
        <translation>先下载模型，或检查网络和代理</translation>
    </message>
    <message>
        <source>the model brings code of its own</source>
        <translation>该模型自带代码</translation>
    </message>
    <message>
        <source>which runs only when allowed</source>
        <translation>只有得到允许才会运行</translation>
    </message>
    <message>
        <source>read it, then --trust-remote-code</source>
        <translation>先阅读代码，再加 --trust-remote-code</translation>
    </message>
    <message>
        <source>an engine or version that knows the model itself</source>
        <translation>使用本身支持该模型的引擎或版本</translation>
    </message>
    <message>
        <source>this version does not know the model&apos;s architecture</source>
        <translation>此版本不认识该模型的架构</translation>
    </message>
    <message>
        <source>newer or older than the engine</source>
        <translation>比引擎更新或更旧</translation>
    </message>
    <message>
        <source>a version of the engine that knows it</source>
        <translation>使用支持它的引擎版本</translation>
    </message>
    <message>
        <source>another engine: headroom-engine plan MODEL --compare</source>
        <translation>换一个引擎：headroom-engine plan MODEL --compare</translation>
    </message>
    <message>
        <source>newer than the engine</source>
        <translation>比引擎更新</translation>
    </message>
    <message>
        <source>a newer llama.cpp</source>
        <translation>使用更新的 llama.cpp</translation>
    </message>
    <message>
        <source>the installed Transformers does not know the model</source>
        <translation>已安装的 Transformers 不认识该模型</translation>
    </message>
    <message>
        <source>newer than the library</source>
        <translation>比该库更新</translation>
    </message>
    <message>
        <source>a newer transformers, as the model&apos;s page asks</source>
        <translation>按模型页面的要求使用更新的 transformers</translation>
    </message>
    <message>
        <source>Headroom&apos;s engine lacks a part that this model needs</source>
        <translation>Headroom 的引擎缺少该模型所需的部分</translation>
    </message>
    <message>
        <source>the line names it</source>
        <translation>该行写明了是哪一部分</translation>
    </message>
    <message>
        <source>the asked length is longer than the model was made for</source>
        <translation>所要求的长度超过模型的设计长度</translation>
    </message>
    <message>
        <source>its configuration says how long</source>
        <translation>它的配置写明了长度</translation>
    </message>
    <message>
        <source>a smaller --max-model-len</source>
        <translation>减小 --max-model-len</translation>
    </message>
    <message>
        <source>rope scaling, where the model&apos;s page describes it</source>
        <translation>在模型页面有说明时使用 rope 缩放</translation>
    </message>
    <message>
        <source>the model has no chat template</source>
        <translation>该模型没有对话模板</translation>
    </message>
    <message>
        <source>base models have none: completions work, chat needs one</source>
        <translation>基础模型没有模板：可以补全，对话则需要模板</translation>
    </message>
    <message>
        <source>--chat-template FILE, or the instruct version of the model</source>
        <translation>--chat-template FILE，或使用该模型的 instruct 版本</translation>
    </message>
    <message>
        <source>a weight has another shape than the configuration says</source>
        <translation>一个权重的形状与配置所说的不同</translation>
    </message>
    <message>
        <source>config.json and weights are not of one model, or the checkpoint is already sharded</source>
        <translation>config.json 与权重不属于同一个模型，或检查点已经被切分</translation>
    </message>
    <message>
        <source>take both from the same folder</source>
        <translation>两者取自同一个文件夹</translation>
    </message>
    <message>
        <source>a weight has another shape than the metadata says</source>
        <translation>一个权重的形状与元数据所说的不同</translation>
    </message>
    <message>
        <source>a broken conversion</source>
        <translation>转换有误</translation>
    </message>
    <message>
        <source>convert or download again</source>
        <translation>重新转换或下载</translation>
    </message>
    <message>
        <source>llama.cpp&apos;s tensor split stopped at an assertion</source>
        <translation>llama.cpp 的张量切分停在一个断言上</translation>
    </message>
    <message>
        <source>it is experimental, and fails for some device counts</source>
        <translation>它是实验性的，在某些设备数下会失败</translation>
    </message>
    <message>
        <source>a power of two of devices</source>
        <translation>设备数取 2 的幂</translation>
    </message>
    <message>
        <source>the engine&apos;s core did not start</source>
        <translation>引擎的核心没有启动</translation>
    </message>
    <message>
        <source>the cause stands above this line</source>
        <translation>原因在该行之上</translation>
    </message>
    <message>
        <source>look at the first error above</source>
        <translation>查看上方的第一个错误</translation>
    </message>
    <message>
        <source>a worker ended</source>
        <translation>一个工作进程退出了</translation>
    </message>
    <message>
        <source>its own error stands above, or the kernel ended it</source>
        <translation>它自己的错误在上方，或者是内核结束了它</translation>
    </message>
    <message>
        <source>look at the first error above, and at dmesg</source>
        <translation>查看上方的第一个错误，以及 dmesg</translation>
    </message>
    <message>
        <source>a worker of Ray ended</source>
        <translation>Ray 的一个工作进程退出了</translation>
    </message>
    <message>
        <source>one request may have %1 tokens, and the cache has room for %2</source>
        <translation>一个请求最多 %1 个词元，而缓存只能容纳 %2 个</translation>
    </message>
    <message>
        <source>one request of %1 tokens needs %2 GiB of cache, %3 are left: %4 GiB are missing</source>
        <translation>一个 %1 词元的请求需要 %2 GiB 缓存，只剩 %3：缺少 %4 GiB</translation>
    </message>
    <message>
        <source>--max-model-len %1 or less</source>
        <translation>--max-model-len %1 或更小</translation>
    </message>
    <message>
        <source>--max-model-len %1 (the engine&apos;s own estimate)</source>
        <translation>--max-model-len %1（引擎自己的估计）</translation>
    </message>
    <message>
        <source>%1 of %2 GiB are free when the engine starts, it wants %3: other programs hold the rest</source>
        <translation>引擎启动时 %2 GiB 中有 %1 空闲，而它需要 %3：其余被其他程序占用</translation>
    </message>
    <message>
        <source>TP=%1 with PP=%2 uses all %3 GPUs</source>
        <translation>TP=%1 与 PP=%2 用到全部 %3 个 GPU</translation>
    </message>
    <message>
        <source>TP=1 with PP=%1</source>
        <translation>TP=1 与 PP=%1</translation>
    </message>
    <message>
        <source>a width of %1 (vocabulary, heads or MLP columns) cannot be dealt to %2 ranks</source>
        <translation>宽度 %1（词表、头或 MLP 列）不能分给 %2 个 rank</translation>
    </message>
    <message>
        <source>TP x PP x DP asks for %1 GPUs, %2 are visible</source>
        <translation>TP x PP x DP 需要 %1 个 GPU，可见 %2 个</translation>
    </message>
    <message>
        <source>%1; the piece that did not fit was %2</source>
        <translation>%1；放不下的一块为 %2</translation>
    </message>
    <message>
        <source>the engine was serving: the share that it had set aside for activations was too small for this load</source>
        <translation>引擎当时在提供服务：为激活预留的份额对此负载来说太小</translation>
    </message>
    <message>
        <source>lower the static share: --gpu-memory-utilization or --mem-fraction-static by 0.03 to 0.05</source>
        <translation>降低静态份额：--gpu-memory-utilization 或 --mem-fraction-static 减 0.03 到 0.05</translation>
    </message>
    <message>
        <source>fewer tokens in a step: --max-num-batched-tokens or --chunked-prefill-size</source>
        <translation>减少每步的词元：--max-num-batched-tokens 或 --chunked-prefill-size</translation>
    </message>
    <message>
        <source>fewer requests in a step: --max-num-seqs or --max-running-requests</source>
        <translation>减少每步的请求：--max-num-seqs 或 --max-running-requests</translation>
    </message>
    <message>
        <source>weights and cache were in place, recording CUDA graphs went beyond the rest</source>
        <translation>权重和缓存已就位，录制 CUDA 图超出了剩余内存</translation>
    </message>
    <message>
        <source>lower the static share a little: --gpu-memory-utilization or --mem-fraction-static by 0.03</source>
        <translation>稍微降低静态份额：--gpu-memory-utilization 或 --mem-fraction-static 减 0.03</translation>
    </message>
    <message>
        <source>record fewer batch sizes: --cuda-graph-max-bs, --max-num-seqs, or --enforce-eager for none</source>
        <translation>减少录制的批大小：--cuda-graph-max-bs、--max-num-seqs，或用 --enforce-eager 完全不录制</translation>
    </message>
    <message>
        <source>the weights are in place, the KV cache does not fit beside them</source>
        <translation>权重已就位，KV 缓存放不下</translation>
    </message>
    <message>
        <source>a shorter context: --max-model-len or --context-length</source>
        <translation>缩短上下文：--max-model-len 或 --context-length</translation>
    </message>
    <message>
        <source>raise the static share: --gpu-memory-utilization or --mem-fraction-static</source>
        <translation>提高静态份额：--gpu-memory-utilization 或 --mem-fraction-static</translation>
    </message>
    <message>
        <source>the weights of a rank do not fit on its GPU, or another program holds part of it</source>
        <translation>一个 rank 的权重在其 GPU 上放不下，或另一个程序占用了一部分</translation>
    </message>
    <message>
        <source>see nvidia-smi for other programs on this GPU</source>
        <translation>用 nvidia-smi 查看此 GPU 上的其他程序</translation>
    </message>
    <message>
        <source>more ranks (TP or PP), or a quantized checkpoint</source>
        <translation>增加 rank（TP 或 PP），或使用量化的检查点</translation>
    </message>
    <message>
        <source>plan first: headroom-engine plan MODEL --gpus …</source>
        <translation>先规划：headroom-engine plan MODEL --gpus …</translation>
    </message>
    <message>
        <source>%1 has compute capability %2</source>
        <translation>%1 的计算能力为 %2</translation>
    </message>
    <message>
        <source>%1 is missing: the model has %2 parts, all in one folder</source>
        <translation>缺少 %1：该模型有 %2 个部分，都放在同一个文件夹中</translation>
    </message>
    <message>
        <source>the file uses tensor type %1, which is newer than this reader</source>
        <translation>该文件使用张量类型 %1，比此读取程序更新</translation>
    </message>
    <message>
        <source>an error that is not in the table of known failures</source>
        <translation>一个不在已知故障表中的错误</translation>
    </message>
    <message>
        <source>%1 GPUs: %2</source>
        <translation>%1 个 GPU：%2</translation>
    </message>
    <message>
        <source>tokens/s of a request %1 is predicted, %2 wished</source>
        <translation>预测每个请求 %1 词元/秒，希望 %2</translation>
    </message>
    <message>
        <source>tokens/s of all requests %1 is predicted, %2 wished</source>
        <translation>预测全部请求 %1 词元/秒，希望 %2</translation>
    </message>
    <message>
        <source>milliseconds to the first token %1 is predicted, %2 wished</source>
        <translation>预测首词元 %1 毫秒，希望 %2</translation>
    </message>
    <message>
        <source>tokens/s of a request is unknown for it</source>
        <translation>未知其每个请求的词元/秒</translation>
    </message>
    <message>
        <source>tokens/s of all requests is unknown for it</source>
        <translation>未知其全部请求的词元/秒</translation>
    </message>
    <message>
        <source>milliseconds to the first token is unknown for it</source>
        <translation>未知其首词元的毫秒数</translation>
    </message>
    <message>
        <source>an engine&apos;s log</source>
        <translation>引擎的日志</translation>
    </message>
    <message>
        <source>no model that is open</source>
        <translation>没有打开的模型</translation>
    </message>
    <message>
        <source>the model that the log is about</source>
        <translation>日志所对应的模型</translation>
    </message>
    <message>
        <source>open it first</source>
        <translation>请先打开它</translation>
    </message>
</context>
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
    <message>
        <source>found %1</source>
        <translation>发现%1</translation>
    </message>
    <message>
        <source>, </source>
        <comment>between what was found and what was expected</comment>
        <translation>，</translation>
    </message>
    <message>
        <source>expected %1</source>
        <translation>应为%1</translation>
    </message>
    <message>
        <source>Show %1</source>
        <translation>查看 %1</translation>
    </message>
    <message>
        <source>Plan for %1</source>
        <translation>按 %1 规划</translation>
    </message>
    <message>
        <source>Context of %1 tokens</source>
        <translation>上下文 %1 个词元</translation>
    </message>
    <message>
        <source>Use %1</source>
        <translation>使用 %1</translation>
    </message>
    <message>
        <source>Whole experts on each GPU</source>
        <translation>每块 GPU 保存完整专家</translation>
    </message>
    <message numerus="yes">
        <source>%n request(s) at once</source>
        <translation>
            <numerusform>同时 %n 个请求</numerusform>
        </translation>
    </message>
    <message>
        <source>KV cache as %1</source>
        <translation>KV 缓存用 %1</translation>
    </message>
    <message>
        <source>Use %1 % of the memory</source>
        <translation>使用 %1 % 的内存</translation>
    </message>
    <message>
        <source>± %1 %</source>
        <translation>± %1 %</translation>
    </message>
    <message>
        <source>at the start</source>
        <translation>在启动时</translation>
    </message>
    <message>
        <source>while it read weights</source>
        <translation>在读取权重时</translation>
    </message>
    <message>
        <source>while it sized the KV cache</source>
        <translation>在确定 KV 缓存大小时</translation>
    </message>
    <message>
        <source>while it captured CUDA graphs</source>
        <translation>在录制 CUDA 图时</translation>
    </message>
    <message>
        <source>while it served</source>
        <translation>在提供服务时</translation>
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
    <message>
        <source>%1 cannot be written: settings and window sizes hold until the window is closed.</source>
        <translation>无法写入 %1：设置和窗口大小只保留到窗口关闭。</translation>
    </message>
    <message>
        <source>&amp;Read a log…</source>
        <translation>读取日志(&amp;R)…</translation>
    </message>
    <message>
        <source>What went wrong by an engine&apos;s log, or plan with what its start measured</source>
        <translation>由引擎的日志找出问题，或按其启动时的测量值规划</translation>
    </message>
    <message>
        <source>&amp;Find GPUs…</source>
        <translation>寻找 GPU(&amp;F)…</translation>
    </message>
    <message>
        <source>The fewest or cheapest GPUs for a length, requests and speeds</source>
        <translation>满足长度、请求数和速度的最少或最便宜的 GPU</translation>
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
    <name>headroom::ui::CalibrationDialog</name>
    <message>
        <source>Start-up log</source>
        <translation>启动日志</translation>
    </message>
    <message>
        <source>%1 %2, %3: predicted and measured</source>
        <translation>%1 %2，%3：预测与测得</translation>
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
        <source>Runtime</source>
        <translation>运行时</translation>
    </message>
    <message>
        <source>Graphs</source>
        <translation>图</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>Tokens of the KV cache</source>
        <translation>KV 缓存的词元数</translation>
    </message>
    <message>
        <source>Requests of full length</source>
        <translation>最大长度的请求数</translation>
    </message>
    <message>
        <source>Term</source>
        <translation>项目</translation>
    </message>
    <message>
        <source>Predicted</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>Measured</source>
        <translation>测得</translation>
    </message>
    <message>
        <source>Difference</source>
        <translation>差异</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>Terms of memory, predicted and measured</source>
        <translation>内存各项的预测与测得</translation>
    </message>
    <message>
        <source>Plans of this machine and engine can add what was measured here to what is modelled.</source>
        <translation>此机器和引擎的规划可以在模型估算之上加入在此测得的数值。</translation>
    </message>
    <message>
        <source>The log tells too little to correct plans by.</source>
        <translation>日志中的信息不足以校正规划。</translation>
    </message>
    <message>
        <source>&amp;Plan with what was measured</source>
        <translation>按测得的数值规划(&amp;P)</translation>
    </message>
    <message numerus="yes">
        <source>%n problem(s) in the log…</source>
        <translation>
            <numerusform>日志中有 %n 个问题…</numerusform>
        </translation>
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
    <name>headroom::ui::ContextChart</name>
    <message>
        <source>Select a layout that the engine accepts.</source>
        <translation>请选择引擎接受的布局。</translation>
    </message>
    <message>
        <source>tokens of each request</source>
        <translation>每个请求的词元数</translation>
    </message>
    <message>
        <source>planned: %1</source>
        <translation>规划：%1</translation>
    </message>
    <message>
        <source>fits: %1</source>
        <translation>放得下：%1</translation>
    </message>
    <message>
        <source>weights and other fixed memory</source>
        <translation>权重和其他固定内存</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>budget %1</source>
        <translation>预算 %1</translation>
    </message>
    <message>
        <source>%1 tokens: %2 of %3 on GPU %4</source>
        <translation>%1 个词元：GPU %4 上 %3 中的 %2</translation>
    </message>
    <message>
        <source>Memory against context length</source>
        <translation>内存与上下文长度</translation>
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
    <message>
        <source>Does what is advised above</source>
        <translation>执行上面的建议</translation>
    </message>
    <message>
        <source>Longest context that fits</source>
        <translation>放得下的最长上下文</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>Most requests of this length</source>
        <translation>此长度的最多请求数</translation>
    </message>
    <message>
        <source>Stages of %1 layers would have room for %2 tokens, %3 % more.</source>
        <translation>各阶段为 %1 层时可容纳 %2 个词元，多 %3 %。</translation>
    </message>
    <message>
        <source>Stages of %1 layers would have room for %2 tokens.</source>
        <translation>各阶段为 %1 层时可容纳 %2 个词元。</translation>
    </message>
    <message>
        <source>Terminal</source>
        <translation>终端</translation>
    </message>
    <message>
        <source>Docker</source>
        <translation>Docker</translation>
    </message>
    <message>
        <source>Memory that serves nothing</source>
        <translation>没有用处的内存</translation>
    </message>
    <message>
        <source>Form of the command</source>
        <translation>命令的形式</translation>
    </message>
    <message>
        <source>Room: %1</source>
        <translation>容量：%1</translation>
    </message>
    <message>
        <source>Speed: modelled; nine of ten timed cases of this kind lie within ±</source>
        <translation>速度：模型估算；同类实测中九成在 ± 以内</translation>
    </message>
    <message>
        <source>Node %1</source>
        <translation>节点 %1</translation>
    </message>
    <message>
        <source>&amp;Forget what was measured</source>
        <translation>忘记测量值(&amp;F)</translation>
    </message>
    <message>
        <source>Plan this machine and engine by the model again</source>
        <translation>重新按模型估算规划此机器和引擎</translation>
    </message>
</context>
<context>
    <name>headroom::ui::DiagnosisDialog</name>
    <message>
        <source>What to do:</source>
        <translation>怎么办：</translation>
    </message>
    <message>
        <source>Line %1:</source>
        <translation>第 %1 行：</translation>
    </message>
    <message>
        <source>Line %1, %2:</source>
        <translation>第 %1 行，%2：</translation>
    </message>
    <message>
        <source>What the log tells</source>
        <translation>日志说明了什么</translation>
    </message>
    <message>
        <source>No error was found.</source>
        <translation>没有发现错误。</translation>
    </message>
    <message numerus="yes">
        <source>%1, %n line(s)</source>
        <translation>
            <numerusform>%1，%n 行</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%1, a log of %2, %n line(s)</source>
        <translation>
            <numerusform>%1，%2 的日志，%n 行</numerusform>
        </translation>
    </message>
    <message>
        <source>Cause and what to do</source>
        <translation>原因和办法</translation>
    </message>
    <message>
        <source>Does what is advised above</source>
        <translation>执行上面的建议</translation>
    </message>
    <message>
        <source>&amp;Copy</source>
        <translation>复制(&amp;C)</translation>
    </message>
    <message>
        <source>Predicted and &amp;measured…</source>
        <translation>预测与测量(&amp;M)…</translation>
    </message>
    <message>
        <source>Also found: %1</source>
        <translation>另外发现：%1</translation>
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
    <name>headroom::ui::EngineComparisonModel</name>
    <message>
        <source>no layout fits</source>
        <translation>没有布局放得下</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>Headroom</source>
        <translation>余量</translation>
    </message>
    <message>
        <source>Most requests</source>
        <translation>最多请求数</translation>
    </message>
    <message>
        <source>Layout</source>
        <translation>布局</translation>
    </message>
    <message>
        <source>Most context</source>
        <translation>最长上下文</translation>
    </message>
    <message>
        <source>Decode tok/s</source>
        <translation>解码 词元/秒</translation>
    </message>
    <message>
        <source>All tok/s</source>
        <translation>总计 词元/秒</translation>
    </message>
    <message>
        <source>TTFT ms</source>
        <translation>首词元 毫秒</translation>
    </message>
    <message>
        <source>Room: %1. Speed: modelled, %2 for decoding, %3 to the first token; nine of ten timed cases of this kind lie within ±.</source>
        <translation>容量：%1。速度：模型估算，解码 %2，首词元 %3；同类实测中九成在 ± 以内。</translation>
    </message>
    <message>
        <source>Room: %1.</source>
        <translation>容量：%1。</translation>
    </message>
    <message>
        <source>Speed: unknown</source>
        <translation>速度：未知</translation>
    </message>
    <message>
        <source>KV cache of %1 tokens.</source>
        <translation>KV 缓存 %1 词元。</translation>
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
    <message numerus="yes">
        <source>nothing came from it for %n second(s). Wait, or stop it.</source>
        <translation>
            <numerusform>已有 %n 秒没有收到任何内容。请等待，或停止它。</numerusform>
        </translation>
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
    <name>headroom::ui::EnginesPage</name>
    <message>
        <source>Each engine at its newest known version with its own rules and memory, for the same model, GPUs and load.</source>
        <translation>在相同的模型、GPU 和负载下，各引擎的最新已知版本按各自的规则与内存占用进行规划。</translation>
    </message>
    <message>
        <source>Open a model to compare engines.</source>
        <translation>打开模型以比较引擎。</translation>
    </message>
    <message>
        <source>Engines side by side</source>
        <translation>引擎并列比较</translation>
    </message>
    <message>
        <source>&amp;Plan for %1</source>
        <translation>按 %1 规划(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Plan for this engine</source>
        <translation>按此引擎规划(&amp;P)</translation>
    </message>
</context>
<context>
    <name>headroom::ui::GpuListModel</name>
    <message>
        <source>%1 of %2</source>
        <translation>%1 / %2</translation>
    </message>
    <message>
        <source>%1 %</source>
        <translation>%1 %</translation>
    </message>
    <message>
        <source>%1 of %2 W</source>
        <translation>%1 / %2 W</translation>
    </message>
    <message>
        <source>%1 W</source>
        <translation>%1 W</translation>
    </message>
    <message>
        <source>%1 °C</source>
        <translation>%1 °C</translation>
    </message>
    <message>
        <source>%1 MHz</source>
        <translation>%1 MHz</translation>
    </message>
    <message>
        <source>no</source>
        <translation>无</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>Busy</source>
        <translation>占用</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>功率</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>SM clock</source>
        <translation>SM 时钟</translation>
    </message>
    <message>
        <source>Processes</source>
        <translation>进程</translation>
    </message>
    <message>
        <source>Slowed by</source>
        <translation>降频原因</translation>
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
        <source>&amp;This machine&apos;s GPUs</source>
        <translation>本机的 GPU(&amp;T)</translation>
    </message>
    <message>
        <source>This machine&apos;s &amp;processor</source>
        <translation>本机的处理器(&amp;P)</translation>
    </message>
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
        <source>Several kinds</source>
        <translation>多种型号</translation>
    </message>
    <message>
        <source>GPUs as text</source>
        <translation>以文本写出的 GPU</translation>
    </message>
    <message>
        <source>For example 6xA800-80GB, 2x24GiB,1x48GiB or 2n8xH100-80GB for two nodes of eight</source>
        <translation>例如 6xA800-80GB、2x24GiB,1x48GiB，或 2n8xH100-80GB（两个节点，每个八卡）</translation>
    </message>
    <message>
        <source>Edit nodes and mixed cards</source>
        <translation>编辑节点和混合显卡</translation>
    </message>
    <message>
        <source>Find GPUs…</source>
        <translation>寻找 GPU…</translation>
    </message>
    <message>
        <source>The fewest or cheapest GPUs for a length, requests and speeds</source>
        <translation>满足长度、请求数和速度的最少或最便宜的 GPU</translation>
    </message>
</context>
<context>
    <name>headroom::ui::MachineDialog</name>
    <message>
        <source>As text: %1</source>
        <translation>文本形式：%1</translation>
    </message>
    <message>
        <source>What-if machine</source>
        <translation>假设的机器</translation>
    </message>
    <message>
        <source>Each row is a kind of node. Nodes &quot;in one&quot; (0) stand together in a single machine. A card is a name of the catalog or a size such as 24GiB.</source>
        <translation>每行是一种节点。节点数为“同一台”（0）的行合在一台机器里。显卡是目录中的名称，或大小如 24GiB。</translation>
    </message>
    <message>
        <source>Nodes and cards</source>
        <translation>节点与显卡</translation>
    </message>
    <message>
        <source>&amp;Add row</source>
        <translation>添加一行(&amp;A)</translation>
    </message>
    <message>
        <source>&amp;Remove row</source>
        <translation>删除一行(&amp;R)</translation>
    </message>
</context>
<context>
    <name>headroom::ui::MachineRows</name>
    <message>
        <source>in one</source>
        <translation>同一台</translation>
    </message>
    <message>
        <source>Nodes</source>
        <translation>节点</translation>
    </message>
    <message>
        <source>GPUs of each</source>
        <translation>每个的 GPU 数</translation>
    </message>
    <message>
        <source>Card</source>
        <translation>显卡</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
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
    <message>
        <source>GPUs of this machine</source>
        <translation>本机的 GPU</translation>
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
    <message>
        <source>As the checkpoint</source>
        <translation>同检查点</translation>
    </message>
    <message>
        <source>None</source>
        <translation>无</translation>
    </message>
    <message>
        <source>Quanti&amp;zation</source>
        <translation>量化(&amp;Z)</translation>
    </message>
    <message>
        <source>Sequences</source>
        <translation>序列数</translation>
    </message>
    <message>
        <source>Tokens in a step</source>
        <translation>每步词元数</translation>
    </message>
    <message>
        <source>Context length</source>
        <translation>上下文长度</translation>
    </message>
    <message>
        <source>Concurrent requests</source>
        <translation>并发请求</translation>
    </message>
    <message>
        <source>What if the weights of a 16-bit model were quantized so</source>
        <translation>假设 16 位模型的权重这样量化</translation>
    </message>
    <message>
        <source>Most requests that the engine takes into one step (max-num-seqs)</source>
        <translation>引擎一步最多处理的请求数（max-num-seqs）</translation>
    </message>
    <message>
        <source>Most tokens of one step (max-num-batched-tokens)</source>
        <translation>一步最多的词元数（max-num-batched-tokens）</translation>
    </message>
    <message>
        <source>Expert &amp;parallel (EP)</source>
        <translation>专家并行 (EP)(&amp;P)</translation>
    </message>
    <message>
        <source>Whole experts on each GPU in place of columns of all of them</source>
        <translation>每块 GPU 保存完整专家，而不是所有专家的列</translation>
    </message>
    <message>
        <source>&amp;Attention data parallel</source>
        <translation>注意力数据并行(&amp;A)</translation>
    </message>
    <message>
        <source>Replicas of the attention share one set of experts</source>
        <translation>注意力的各副本共用一组专家</translation>
    </message>
    <message>
        <source>any build</source>
        <translation>任意版本</translation>
    </message>
    <message>
        <source>%1 (newest)</source>
        <translation>%1（最新）</translation>
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
    <message numerus="yes">
        <source>%1: memory of the fullest GPU when each of %n request(s) has grown to a length.</source>
        <translation>
            <numerusform>%1：%n 个请求各增长到某一长度时，占用最多的 GPU 的内存。</numerusform>
        </translation>
    </message>
    <message>
        <source>Memory and context</source>
        <translation>内存与上下文</translation>
    </message>
    <message>
        <source>Engines</source>
        <translation>引擎</translation>
    </message>
    <message>
        <source>Views of the plan</source>
        <translation>规划的视图</translation>
    </message>
    <message>
        <source>Logs (*.log *.txt *.out)</source>
        <translation>日志 (*.log *.txt *.out)</translation>
    </message>
    <message>
        <source>Open an engine&apos;s log</source>
        <translation>打开引擎的日志</translation>
    </message>
    <message>
        <source>Open a model first: GPUs are looked for that serve it.</source>
        <translation>请先打开模型：寻找的是能运行它的 GPU。</translation>
    </message>
</context>
<context>
    <name>headroom::ui::PlanSession</name>
    <message>
        <source>%1: found a name that is no UTF-8 text, expected one; rename the file or folder</source>
        <translation>%1：名称不是 UTF-8 文本；请重命名文件或文件夹</translation>
    </message>
    <message>
        <source>Open a model first.</source>
        <translation>请先打开模型。</translation>
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
    <name>headroom::ui::WishDialog</name>
    <message>
        <source>Looking: %1 of %2 cards</source>
        <translation>正在寻找：%1 / %2 种显卡</translation>
    </message>
    <message>
        <source>%1 of %2 cards grant it with %3 GPUs or fewer.</source>
        <translation>%2 种显卡中有 %1 种用不超过 %3 个 GPU 即可满足。</translation>
    </message>
    <message>
        <source>Find GPUs</source>
        <translation>寻找 GPU</translation>
    </message>
    <message>
        <source>The smallest machine of each card that serves %1 under %2 as you wish. Fewest GPUs first, or the cheapest once you write prices into the table.</source>
        <translation>每种显卡中能按要求用 %2 运行 %1 的最小机器。GPU 最少的在前；在表中写入价格后，最便宜的在前。</translation>
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
        <source>&amp;Most GPUs</source>
        <translation>GPU 上限(&amp;M)</translation>
    </message>
    <message>
        <source>Pro&amp;mpt tokens</source>
        <translation>提示词元(&amp;I)</translation>
    </message>
    <message>
        <source>&amp;Answer tokens</source>
        <translation>回答词元(&amp;A)</translation>
    </message>
    <message>
        <source>&amp;First token within</source>
        <translation>首词元不超过(&amp;F)</translation>
    </message>
    <message>
        <source>Tokens/s of &amp;each</source>
        <translation>每个请求词元/秒(&amp;E)</translation>
    </message>
    <message>
        <source>Tokens/s of a&amp;ll</source>
        <translation>全部请求词元/秒(&amp;L)</translation>
    </message>
    <message>
        <source>Default</source>
        <translation>默认</translation>
    </message>
    <message>
        <source> ms</source>
        <translation> 毫秒</translation>
    </message>
    <message>
        <source>Any</source>
        <translation>不限</translation>
    </message>
    <message>
        <source>Most tokens of one request; the model&apos;s own length unless written</source>
        <translation>一个请求的最多词元数；不写则为模型自身的长度</translation>
    </message>
    <message>
        <source>Requests at once</source>
        <translation>同时的请求数</translation>
    </message>
    <message>
        <source>Most GPUs of one machine</source>
        <translation>一台机器的最多 GPU 数</translation>
    </message>
    <message>
        <source>Most milliseconds to the first token</source>
        <translation>到首词元的最长毫秒数</translation>
    </message>
    <message>
        <source>Least tokens per second of each request</source>
        <translation>每个请求每秒的最少词元数</translation>
    </message>
    <message>
        <source>Least tokens per second of all requests together</source>
        <translation>全部请求每秒合计的最少词元数</translation>
    </message>
    <message>
        <source>Cards looked at</source>
        <translation>已查看的显卡</translation>
    </message>
    <message>
        <source>Machines that grant the wish</source>
        <translation>满足要求的机器</translation>
    </message>
    <message>
        <source>&amp;Plan for this machine</source>
        <translation>按此机器规划(&amp;P)</translation>
    </message>
</context>
<context>
    <name>headroom::ui::WishModel</name>
    <message>
        <source>%1 does not grant it: %2</source>
        <translation>%1 不能满足：%2</translation>
    </message>
    <message>
        <source>%1 as %2: %3 are left on the fullest GPU.</source>
        <translation>%1，%2：占用最多的 GPU 还余 %3。</translation>
    </message>
    <message>
        <source>Speed: unknown</source>
        <translation>速度：未知</translation>
    </message>
    <message>
        <source>Modelled: %1 tokens/s of each request %2, first token after %3 ms %4; nine of ten timed cases of this kind lie within ±.</source>
        <translation>模型估算：每个请求 %1 词元/秒 %2，首词元 %3 毫秒 %4；同类实测中九成在 ± 以内。</translation>
    </message>
    <message>
        <source>does not grant it</source>
        <translation>不能满足</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Layout</source>
        <translation>布局</translation>
    </message>
    <message>
        <source>Headroom</source>
        <translation>余量</translation>
    </message>
    <message>
        <source>Tokens/s of each</source>
        <translation>每个请求 词元/秒</translation>
    </message>
    <message>
        <source>Tokens/s of all</source>
        <translation>全部 词元/秒</translation>
    </message>
    <message>
        <source>First token, ms</source>
        <translation>首词元 毫秒</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>Price of a card</source>
        <translation>单卡价格</translation>
    </message>
    <message>
        <source>Price</source>
        <translation>总价</translation>
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
