# SPDX-License-Identifier: Apache-2.0
"""Writes the tokenizers, GGUFs and expected results of the text tests beside itself.

Ids and texts come from the tokenizers library, prompts from Jinja with the settings that Transformers gives it.
usage: make_text_data.py    (needs tokenizers, transformers, jinja2, gguf, numpy)
"""
import json, pathlib, random

import gguf, jinja2, numpy
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = pathlib.Path(__file__).parent
CORPUS = ["A workbench shows what fits before anything is loaded. Six devices share the layers and the heads; the rest is headroom.",
          "Every question gets an answer, and every answer ends. It's 12:30, they've 1,024 tokens, we'll see 3.14 soon.",
          "Größe, déjà vu, naïve Straße. 人工智能 显存 不够用。 한국어 모델 실행 😀 🇩🇪 привет мир", "def load(path): return [x for x in path if x != 0]\n"] * 8
TEXTS = ["", " ", "  two  spaces ", "Hello, what fits?", "the headroom's 1024 tokens", "A\n\nB\t c", "déjà vu e\u0301 Å ﬁ", "人工智能模型 不够用", "한국어 모델",
         "😀 👨‍👩‍👧 🇩🇪", "x<|end|>y <|end|> z", "<|tool|>  <|tool|>a", "a [mask] b[mask]c", "word wordy word", "  NORM norm Norm", "2024-03-15 12345678",
         "don't they'LL WE'VE", "\u00a0\u3000\u200b\ufeff", "привет, МИР", "if (a != b) { return a->x; }", "\x00\x01 \x7f", "¿qué? — ‘ja’ “nein”…", "ÀÉÎ İı ß"]
TEXTS += ["".join(random.Random(seed).choices(" abheloTdr.,'1234\n é人한😀", k=24)) for seed in range(16)]

ADDED = [AddedToken("<|end|>", special=True), AddedToken("<|tool|>", special=False, normalized=False, rstrip=True),
         AddedToken("[mask]", special=True, lstrip=True), AddedToken("word", special=False, single_word=True, normalized=False),
         AddedToken("norm", special=False, normalized=True)]


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([token for token in ADDED if token.special])
    tokenizer.add_tokens([token for token in ADDED if not token.special])
    return tokenizer


def byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, trainers.BpeTrainer(vocab_size=500, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    end = tokenizer.token_to_id("<|end|>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<|end|> $A", special_tokens=[("<|end|>", end)])
    return tokenizer


def split_pattern():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    return train(tokenizer, trainers.BpeTrainer(vocab_size=450, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))


def byte_fallback():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    # Words do not join across spaces while it learns.
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    tokenizer.train_from_iterator(CORPUS[:2] * 8, trainers.BpeTrainer(vocab_size=500, show_progress=False, special_tokens=special + bytes_))
    data = json.loads(tokenizer.to_str())
    data["pre_tokenizer"] = None
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] in special]
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    train(tokenizer, trainers.UnigramTrainer(vocab_size=220, show_progress=False, unk_token="<unk>", special_tokens=["<unk>", "</s>"]))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))])
    return tokenizer


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    train(tokenizer, trainers.WordPieceTrainer(vocab_size=320, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]"]))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]")))
    return tokenizer


def word_level():
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    return train(tokenizer, trainers.WordLevelTrainer(vocab_size=300, show_progress=False, special_tokens=["<unk>"]))


def encodings():
    cases = []
    for make in (byte_level, split_pattern, byte_fallback, unigram, word_piece, word_level):
        tokenizer = make()
        folder = HERE / make.__name__
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=False) + "\n")
        for text in TEXTS:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            cases.append({"tokenizer": make.__name__, "text": text, "ids": ids, "special": tokenizer.encode(text).ids,
                          "decoded": tokenizer.decode(ids, skip_special_tokens=False), "skipped": tokenizer.decode(ids, skip_special_tokens=True)})
    return cases


def decodings():
    """Every decoder over a few tokens."""
    words = ["<0xE4>", "<0xBD>", "<0xA0>", "▁a", "b▁", "▁", "##ing", "do", "not", "n't", ".", "x</w>", "y", "<pad>", "|", "Ġthe", "ä½", "ł", "'s", "<0x41>"]
    named = {
        "byte_level": decoders.ByteLevel(), "byte_fallback": decoders.ByteFallback(), "fuse": decoders.Fuse(), "strip": decoders.Strip("▁", 1, 1),
        "replace": decoders.Replace("▁", " "), "replace_regex": decoders.Replace(Regex("[ab]+"), "-"), "metaspace": decoders.Metaspace(),
        "metaspace_never": decoders.Metaspace(prepend_scheme="never"), "word_piece": decoders.WordPiece(), "word_piece_raw": decoders.WordPiece(cleanup=False),
        "bpe": decoders.BPEDecoder(), "ctc": decoders.CTC(), "none": None}
    sequences = [[0, 1, 2], [0, 1], [1, 0, 1, 2], [3, 4, 5, 3], [7, 8, 6, 10], [7, 9, 10], [11, 12, 11], [7, 7, 13, 7, 14, 14, 8], [15, 16, 17, 15], [16, 15], [8, 18, 19, 3]]
    cases = []
    for name, decoder in named.items():
        tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="y"))
        if decoder is not None:
            tokenizer.decoder = decoder
        source = json.loads(tokenizer.to_str())
        for ids in sequences:
            if name == "strip" and 5 in ids:  # the library panics where a token is stripped from both sides to less than nothing
                continue
            cases.append({"decoder": name, "source": source, "ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False)})
    return cases


def write_gguf(name, model, tokens, kinds, extra):
    writer = gguf.GGUFWriter(str(HERE / name), "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    extra(writer)
    writer.add_tensor("token_embd.weight", numpy.zeros((1, 8), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ggufs():
    """The byte-level and the byte-fallback tokenizers as GGUFs; expected ids from the library."""
    cases = []
    data = json.loads((HERE / "byte_level" / "tokenizer.json").read_text())
    vocabulary = data["model"]["vocab"]
    added = {token["id"]: token for token in data["added_tokens"] if token["content"] in ("<|end|>", "norm")}
    tokens = sorted(vocabulary, key=vocabulary.get)
    kinds = [1] * len(tokens)
    for token in added.values():  # <|end|> and norm get the ids behind the vocabulary
        kinds.append(3 if token["special"] else 4)
        tokens.append(token["content"])
        token["id"] = len(tokens) - 1
    tokens.append("[PAD]")
    kinds.append(5)
    end = tokens.index("<|end|>")

    def extra(writer):
        writer.add_tokenizer_pre("smollm")
        writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in data["model"]["merges"]])
        writer.add_eos_token_id(end)
        writer.add_bos_token_id(end)
        writer.add_add_bos_token(True)
        writer.add_chat_template("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")

    write_gguf("byte_level.gguf", "gpt2", tokens, kinds, extra)
    data["added_tokens"] = [dict(token, normalized=False) for token in added.values()]
    data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                             {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]}
    data["post_processor"] = None
    tokenizer = Tokenizer.from_str(json.dumps(data))
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        cases.append({"file": "byte_level.gguf", "text": text, "ids": ids, "special": [end] + ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)})

    tokenizer = Tokenizer.from_file(str(HERE / "byte_fallback" / "tokenizer.json"))
    data = json.loads(tokenizer.to_str())
    vocabulary = data["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    order = {}
    for rank, merge in enumerate(data["model"]["merges"]):
        order.setdefault("".join(merge) if not isinstance(merge, str) else merge.replace(" ", ""), rank)
    scores = [-float(order.get(token, 10000)) for token in tokens]
    kinds = [2 if token == "<unk>" else 3 if token in ("<s>", "</s>") else 6 if token.startswith("<0x") else 1 for token in tokens]

    def extra(writer):
        writer.add_token_scores(scores)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)

    write_gguf("scored.gguf", "llama", tokens, kinds, extra)
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append({"file": "scored.gguf", "text": text, "ids": ids, "special": [1] + ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)})
    return cases


def prompts():
    user = lambda text: {"role": "user", "content": text}
    assistant = lambda text: {"role": "assistant", "content": text}
    plain = {"messages": [user("What fits?"), assistant(" Six. "), user("And then?\n")]}
    system = {"messages": [{"role": "system", "content": "Be brief."}, user("Größe? <b>&</b> 'x' \"y\"")], "add_generation_prompt": False}
    tools = {"messages": [user("Weather?"), {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": "c1", "function": {"name": "look", "arguments": {"place": "Köln", "days": 2, "deep": {"a": [1, 2.5, None, True]}}}}]},
                          {"role": "tool", "content": "rain", "tool_call_id": "c1"}],
             "tools": [{"type": "function", "function": {"name": "look", "description": "Looks <up> & 'down'", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}}}]}
    parts = {"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]}
    templates = {
        "loop variables": "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ '^' if loop.first }}{{ '$' if loop.last }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.cycle('a', 'b') }} {{ loop.previtem.role if not loop.first }} {{ m.role }}\n{% else %}none{% endfor %}",
        "namespace": "{%- set ns = namespace(count=0, last='') -%}{%- for m in messages if m.role == 'user' -%}{%- set ns.count = ns.count + 1 -%}{%- set ns.last = m.content | trim -%}{%- endfor -%}{{ ns.count }}:{{ ns.last }}",
        "macros": "{%- macro turn(role, text='-') -%}[{{ role }}|{{ text | trim }}|{{ varargs | join(',') }}|{{ kwargs | length }}]{%- endmacro -%}{% for m in messages %}{{ turn(m.role, m.content) }}{{ turn(m['role'], extra=1) }}{{ turn('x', 'y', 1, 2) }}{% endfor %}",
        "call block": "{% macro box(kind) %}<{{ kind }}>{{ caller(kind | upper) }}</{{ kind }}>{% endmacro %}{% for m in messages %}{% call(shown) box(m.role) %}{{ shown }}={{ m.content }}{% endcall %}{% endfor %}",
        "filter block": "{% filter upper | replace('A', '_') %}{% for m in messages %}{{ m.content }} {% endfor %}{% endfilter %}",
        "slices": "{{ messages[0].role }}{{ messages[-1]['content'][:4] }}{{ messages[1:] | length }}{{ messages[::-1][0].content }}{{ 'abcdef'[1:-1:2] }}{{ 'abc'[::-1] }}{% for m in messages[:-1] %}{{ m.role[0] }}{% endfor %}",
        "tojson": "{% for t in tools or [] %}{{ t | tojson }}\n{{ t.function.parameters | tojson(indent=2) }}{% endfor %}{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{{ m.content | tojson }}{% endfor %}",
        "raise": "{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('Role ' + m.role + ' is not supported!') }}{% endif %}{{ m.content }}{% endfor %}",
        "trim and whitespace": "{{ bos_token }}\n   {% for m in messages %}\n  {{- m.role }}:\n    {%- if m.content %} {{ m.content.strip() }} {%+ endif %}\n\n{% endfor %}\n{#- gone -#}\n  end\n",
        "is tests": "{% for m in messages %}{{ m.content is string }}{{ m.content is iterable }}{{ m.content is mapping }}{{ m.tool_calls is defined }}{{ m.nothing is none }}{{ m.nothing is undefined }}{{ loop.index is odd }}{{ loop.index is divisibleby 2 }}{{ 3 is number }}{{ true is boolean }}{{ 'a' is in m.role }}{% endfor %}",
        "methods": "{% for m in messages %}{{ m.items() | list | length }}{{ m.get('x', 'no') }}{{ m.role.upper() }}{{ m.role.startswith('us') }}{{ m.role.title() }}{{ m.role.replace('u', 'U') }}{{ 'a,b,,c'.split(',') }}{{ ' x '.lstrip() }}|{{ 'x\\n'.rstrip() }}|{{ m.keys() | join('/') }}{% endfor %}",
        "filters": "{{ messages | map(attribute='role') | unique | join(', ') }}|{{ messages | selectattr('role', 'equalto', 'user') | list | length }}|{{ messages | rejectattr('role', 'eq', 'user') | map(attribute='role') | list }}|{{ [3, 1, 2] | sort | reverse | list }}|{{ 'ab cd' | capitalize }}|{{ 'x' | default('y') }}{{ none | default('z', true) }}|{{ 3.7 | int }}{{ '5' | int + 1 }}|{{ [1, 2, 3] | sum }}|{{ {'b': 1, 'a': 2} | dictsort }}|{{ 'a\\nb' | indent(2) }}|{{ [[1, 'a'], [2, 'b']] | map('first') | list }}|{{ (messages | first).role }}{{ (messages | last).role }}|{{ '<x>' | escape }}|{{ range(2, 8, 3) | list }}",
        "arithmetic": "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 7 / 2 }} {{ 1 / 3 }} {{ 1e20 }} {{ 1.0 }} {{ 'a' * 3 }} {{ 'a' ~ 1 ~ none ~ true }} {{ [1] + [2] }} {{ 1 < 2 <= 2 }} {{ not 1 or 0 and 2 }} {{ (1, 'a') }} {{ {'k': [none, 1.5]} }} {{ 'x' if 0 }}|{{ 5 in [5] }}{{ messages | length > 1 and 'many' or 'one' }}",
        "content parts": "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'text' %}<{{ p.text }}>{% endif %}{% endfor %}{% endif %}{% endfor %}",
        "generation and break": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% if loop.index == 2 %}{% break %}{% endif %}{% continue %}never{% endfor %}{% if add_generation_prompt %}>{% endif %}",
        "set block": "{% set text %}{% for m in messages %}{{ m.role }};{% endfor %}{% endset %}{{ text | upper }}{% set a, b = 1, 'two' %}{{ a }}{{ b }}{% with x = 3 %}{{ x }}{% endwith %}{{ x is defined }}",
        "scoping": "{% set found = false %}{% for m in messages %}{% set found = true %}{{ found }}{% endfor %}{{ found }}{% if true %}{% set found = 5 %}{% endif %}{{ found }}",
        "recursive loop": "{% for n in [{'v': 1, 'c': [{'v': 2, 'c': []}, {'v': 3, 'c': [{'v': 4, 'c': []}]}]}] recursive %}({{ n.v }}{{ loop.depth }}{{ loop(n.c) }}){% endfor %}",
        "division by zero": "{{ messages[0].content }}{{ 1 // 0 }}", "undefined attribute": "{{ messages[0].nothing.more }}", "format": "{{ '%s has %d of %.2f%%' | format('x', 3, 2.5) }}{{ '%05d|%-4s|%x' % (42, 'ab', 255) }}{{ '{} and {1}'.replace('{}', '{0}').format('a', 'b') }}",
    }
    cases = []
    for name, source in templates.items():
        for number, request in enumerate((plain, system, tools, parts)):
            try:
                prompt = _compile_jinja_template(source).render(messages=request["messages"], tools=request.get("tools"), documents=None,
                                                                add_generation_prompt=request.get("add_generation_prompt", True), bos_token="<s>", eos_token="</s>")
                cases.append({"name": f"{name}, {number}", "template": source, "request": request, "prompt": prompt})
            except (jinja2.exceptions.TemplateError, ZeroDivisionError, TypeError) as fault:
                cases.append({"name": f"{name}, {number}", "template": source, "request": request, "error": str(fault)})
    return cases


def write(name, cases):
    with open(HERE / name, "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases) + "\n]\n")


if __name__ == "__main__":
    write("encodings.json", encodings())
    write("decodings.json", decodings())
    write("ggufs.json", ggufs())
    write("prompts.json", prompts())
