"""A piece of code in each language that the pack ``code`` knows, with what it defines and where it names things."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """Code, its symbols as ``kind inside.name``, and its references to ``target`` and ``dep``."""

    text: str
    symbols: list[str]
    references: list[str]


SAMPLES = {
    "py": Sample(
        'from lib import dep\n\n\ndef target():\n    """target"""\n\n\nclass Box:\n'
        "    async def put(self):\n        target()\n        return self.target(dep)\n",
        ["function target", "class Box", "method Box.put"],
        [
            "import dep in the file",
            "definition target in the file",
            "call target in Box.put",
            "call target in Box.put",
            "use dep in Box.put",
        ],
    ),
    "js": Sample(
        "import { dep } from 'lib';\nexport function target() {}\nconst arrow = () => target();\n"
        "class Box { put() { this.target(dep); } field = () => 'target'; }\n",
        ["function target", "function arrow", "class Box", "method Box.put", "method Box.field"],
        [
            "import dep in the file",
            "definition target in the file",
            "call target in arrow",
            "call target in Box.put",
            "use dep in Box.put",
        ],
    ),
    "ts": Sample(
        "interface Shape { area(): number }\ntype Name = string;\nenum Color { Red }\n"
        "abstract class Box<T> { put(x: T): void { target<T>(x); } }\n"
        "namespace inner { function target<T>(x: T) {} }\n",
        [
            "interface Shape",
            "type Name",
            "enum Color",
            "class Box",
            "method Box.put",
            "module inner",
            "function inner.target",
        ],
        ["call target in Box.put", "definition target in inner"],
    ),
    "tsx": Sample(
        "export const target = (x: number) => <b>{dep(x)}</b>;\n",
        ["function target"],
        ["definition target in the file", "call dep in target"],
    ),
    "go": Sample(
        'package a\n\nimport dep "lib"\n\ntype Box struct{}\ntype Shape interface{ Area() int }\n'
        "func (b *Box) Put() { target(); dep.Run() }\nfunc target() {}\n",
        ["struct Box", "interface Shape", "method Box.Put", "function target"],
        ["import dep in the file", "call target in Box.Put", "use dep in Box.Put", "definition target in the file"],
    ),
    "rs": Sample(
        "use lib::dep;\nstruct Box<T>(T);\ntrait Shape { fn area(&self); }\n"
        "impl<T> Box<T> { fn put(&self) { target::<u8>(dep); self.target(); } }\nfn target<T>(x: T) {}\n"
        "mod inner { macro_rules! twice { () => {} } }\n",
        [
            "struct Box",
            "trait Shape",
            "method Shape.area",
            "method Box.put",
            "function target",
            "module inner",
            "macro inner.twice",
        ],
        [
            "import dep in the file",
            "call target in Box.put",
            "use dep in Box.put",
            "call target in Box.put",
            "definition target in the file",
        ],
    ),
    "java": Sample(
        "import lib.dep;\nclass Box {\n  Box() { this.target(1); }\n"
        "  int target(int x) { return dep.get(target(x)); }\n"
        "  enum Color { RED }\n  record Pair(int a) {}\n}\ninterface Shape {}\n",
        ["class Box", "method Box.Box", "method Box.target", "enum Box.Color", "class Box.Pair", "interface Shape"],
        [
            "import dep in the file",
            "call target in Box.Box",
            "definition target in Box",
            "use dep in Box.target",
            "call target in Box.target",
        ],
    ),
    "c": Sample(
        "#include <lib.h>\nstruct box { int a; };\nenum color { RED };\nint target(int);\n"
        "static int *put(struct box *b) { return b->target(dep); }\nint target(int x) { return x; }\n",
        ["struct box", "enum color", "function put", "function target"],
        [
            "use target in the file",
            "call target in put",
            "use dep in put",
            "definition target in the file",
        ],
    ),
    "cpp": Sample(
        "namespace inner { template <typename T> T target(T a) { return a; } }\n"
        "class Box { public: void put() { inner::target(1); } void get(); };\nvoid Box::get() { dep->target(); }\n",
        ["module inner", "function inner.target", "class Box", "method Box.put", "method Box.get"],
        ["definition target in inner", "call target in Box.put", "use dep in Box.get", "call target in Box.get"],
    ),
    "cs": Sample(
        "using dep;\nnamespace Inner {\n"
        "  class Box { Box() { target(1); } int target(int x) { return this.target(x); } }\n"
        "  struct Point {}\n  interface IShape {}\n  enum Color {}\n}\n",
        ["class Box", "method Box.Box", "method Box.target", "struct Point", "interface IShape", "enum Color"],
        [
            "import dep in the file",
            "call target in Box.Box",
            "definition target in Box",
            "call target in Box.target",
        ],
    ),
    "kt": Sample(
        "import lib.dep\n\nfun target(x: Int): Int { return dep(x) }\nclass Box { fun put() = other.target(1) }\n"
        "interface Shape\n",
        ["function target", "class Box", "method Box.put", "interface Shape"],
        [
            "import dep in the file",
            "definition target in the file",
            "call dep in target",
            "call target in Box.put",
        ],
    ),
    "swift": Sample(
        "import dep\nfunc target(x: Int) -> Int { return x }\nclass Box { func put() { target(x: 1) } }\n"
        "struct Point {}\nprotocol Shape {}\n",
        ["function target", "class Box", "method Box.put", "struct Point", "interface Shape"],
        ["import dep in the file", "definition target in the file", "call target in Box.put"],
    ),
    "php": Sample(
        "<?php\nuse lib\\dep;\nfunction target($x) { return $x; }\n"
        "class Box { function put() { target(1); $this->target(2); Box::target(3); } }\n"
        "interface Shape {}\ntrait Able {}\n",
        ["function target", "class Box", "method Box.put", "interface Shape", "trait Able"],
        [
            "import dep in the file",
            "definition target in the file",
            "call target in Box.put",
            "call target in Box.put",
            "call target in Box.put",
        ],
    ),
    "rb": Sample(
        "def target(x)\n  dep(x)\nend\n\nmodule Inner\n  class Box\n    def put\n      other.target(1)\n    end\n\n"
        "    def self.make\n    end\n  end\nend\n",
        ["function target", "module Inner", "class Inner.Box", "method Inner.Box.put", "method Inner.Box.make"],
        ["definition target in the file", "call dep in target", "call target in Inner.Box.put"],
    ),
    "scala": Sample(
        "import lib.dep\nobject Tools { def target(x: Int) = dep(x) }\n"
        "class Box { def put() = Tools.target(1) }\ntrait Shape\n",
        ["object Tools", "method Tools.target", "class Box", "method Box.put", "trait Shape"],
        [
            "import dep in the file",
            "definition target in Tools",
            "call dep in Tools.target",
            "call target in Box.put",
        ],
    ),
    "lua": Sample(
        "local function target(x) return dep(x) end\nfunction Box.put() Box.target(1) end\n",
        ["function target", "method Box.put"],
        ["definition target in the file", "call dep in target", "call target in Box.put"],
    ),
    "sh": Sample(
        "target() { dep 1; }\nfunction put { target; }\n",
        ["function target", "function put"],
        ["definition target in the file", "call dep in target", "call target in put"],
    ),
}
