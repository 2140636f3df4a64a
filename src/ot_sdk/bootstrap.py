"""What a worker's interpreter executes: ``python -I bootstrap.py``."""

import os
import sys


def take_wire() -> "tuple[int, int]":
    """Return private copies of standard input and output, and let the originals lead nowhere that matters.

    Whatever a pack, a C library or a child process reads or writes by itself, it cannot touch a message.
    """
    wire_in, wire_out = private_copy(0), private_copy(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return wire_in, wire_out


def private_copy(fd: int) -> int:
    """Return a copy above the standard three, which child processes do not inherit."""
    copies = [os.dup(fd)]
    while copies[-1] < 3:
        copies.append(os.dup(fd))
    for spare in copies[:-1]:
        os.close(spare)
    if os.name == "posix":
        os.set_blocking(copies[-1], True)  # a server's event loop may have left it otherwise
    return copies[-1]


def expose_package() -> None:
    """Make ``ot_sdk`` importable, and nothing else that lies beside it."""
    from importlib.util import module_from_spec, spec_from_file_location  # noqa: PLC0415 - the wire comes first

    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would cost each start 5 ms
    file = os.path.join(here, "__init__.py")  # noqa: PTH118 - as above
    spec = spec_from_file_location("ot_sdk", file, submodule_search_locations=[here])
    assert spec is not None and spec.loader is not None
    module = sys.modules["ot_sdk"] = module_from_spec(spec)
    spec.loader.exec_module(module)


def main() -> None:
    """Take the wire, then become the worker."""
    wire_in, wire_out = take_wire()
    expose_package()
    from ot_sdk.worker_loop import WorkerLoop  # noqa: PLC0415 - could not be imported before

    WorkerLoop(wire_in, wire_out).serve()


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    expose_package()  # a child that a tool started by multiprocessing imports the pack, and the pack imports ot_sdk
