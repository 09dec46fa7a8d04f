"""Assembler: the text of one LLVM function as it is written, instruction by instruction and block by block."""

from __future__ import annotations

from gquery.kernels.lowering.values import INTEGER_BITS, Operand, Type, is_pointer, is_signed, items_of, llvm_type


class LoweringError(Exception):
    """What has no meaning in a kernel: a fault of who wrote it."""


class Assembler:
    """Writes instructions. A block is open until it branches or returns; what would come behind that is never reached, so
    that callers look at ``is_open`` before they write on."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.variables: list[str] = []  # places on the stack, at the function's beginning
        self.label = "entry"
        self.is_open = True
        self._made = 0

    # ---- instructions ----

    def register(self) -> str:
        """A name for a result that has not been written yet."""
        self._made += 1
        return f"%.{self._made}"

    def emit(self, instruction: str) -> str:
        """An instruction with a result: its register."""
        register = self.register()
        self.lines.append(f"{register} = {instruction}")
        return register

    def do(self, instruction: str) -> None:
        """An instruction without a result."""
        self.lines.append(instruction)

    def variable(self, name: str, type_: Type) -> None:
        """A place on the stack for a variable that is set more than once; LLVM makes registers of them."""
        self.variables.append(f"%{name}.p = alloca {llvm_type(type_)}")

    def set(self, name: str, type_: Type, value: str) -> None:
        spelled = llvm_type(type_)
        self.do(f"store {spelled} {value}, {spelled}* %{name}.p")

    def get(self, name: str, type_: Type) -> Operand:
        spelled = llvm_type(type_)
        return Operand(type_, self.emit(f"load {spelled}, {spelled}* %{name}.p"))

    # ---- blocks ----

    def labels(self, *kinds: str) -> list[str]:
        """New labels, one for each word that says what it is for."""
        self._made += 1
        return [f".{kind}{self._made}" for kind in kinds]

    def start(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.label, self.is_open = label, True

    def branch(self, label: str) -> None:
        """End the block, if it is open."""
        if self.is_open:
            self.do(f"br label %{label}")
            self.is_open = False

    def choose(self, test: str, then: str, otherwise: str) -> None:
        """End the block with one of two others, by an i1."""
        self.do(f"br i1 {test}, label %{then}, label %{otherwise}")
        self.is_open = False

    # ---- values of other types ----

    def cast(self, value: Operand, to: Type) -> str:
        """The value as another type: integers are widened by their sign, or lose their upper bits."""
        given = value.type
        if given == to:
            return value.text
        if isinstance(given, tuple) and isinstance(to, tuple) and len(given) == len(to):
            parts = [self.cast(self.item(value, n), t) for n, t in enumerate(to)]
            return self.several([Operand(t, part) for t, part in zip(to, parts, strict=True)]).text
        if isinstance(given, tuple) or isinstance(to, tuple):
            raise LoweringError(f"{given} as {to}")
        if given in INTEGER_BITS and to in INTEGER_BITS:
            return self._integer(value, to)
        if to == "f64" and given == "f32":
            return self.emit(f"fpext float {value.text} to double")
        if to == "f64" and given in INTEGER_BITS:
            how = "sitofp" if is_signed(given) else "uitofp"
            return self.emit(f"{how} {llvm_type(given)} {value.text} to double")
        if to in ("i64", "u64") and given == "f64":
            return self.emit(f"fptosi double {value.text} to i64")
        if is_pointer(given) and is_pointer(to):
            if llvm_type(given) == llvm_type(to):
                return value.text
            return self.emit(f"bitcast {llvm_type(given)} {value.text} to {llvm_type(to)}")
        raise LoweringError(f"{given} as {to}")

    def _integer(self, value: Operand, to: str) -> str:
        assert isinstance(value.type, str)
        before, after = INTEGER_BITS[value.type], INTEGER_BITS[to]
        if before == after:
            return value.text
        if to == "bool":
            return self.emit(f"icmp ne i{before} {value.text}, 0")
        how = "trunc" if before > after else "sext" if is_signed(value.type) else "zext"
        return self.emit(f"{how} i{before} {value.text} to i{after}")

    def item(self, value: Operand, place: int) -> Operand:
        """One of the parts of a value."""
        register = self.emit(f"extractvalue {llvm_type(value.type)} {value.text}, {place}")
        return Operand(items_of(value.type)[place], register)

    def several(self, parts: list[Operand]) -> Operand:
        """Values as one."""
        types = [p.type for p in parts]
        if not all(isinstance(t, str) for t in types):
            raise LoweringError(f"a tuple in a tuple: {types}")
        type_: Type = tuple([t for t in types if isinstance(t, str)])
        made = "undef"
        for n, p in enumerate(parts):
            made = self.emit(f"insertvalue {llvm_type(type_)} {made}, {llvm_type(p.type)} {p.text}, {n}")
        return Operand(type_, made)
