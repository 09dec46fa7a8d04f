"""The plugin of pytest that gives Ibis' suite what it wants of a backend: a package with a ``TestConf`` under its own name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import ibis
from ibis.backends.tests.base import BackendTest

import gquery.api.ibis
from benchmarks.ibis_suite.data import tables


class TestConf(BackendTest):  # type: ignore[misc]
    """gquery on the interpreter, without the types that it has not."""

    deps = ()
    stateful = False
    supports_arrays = supports_structs = supports_json = supports_map = False

    @classmethod
    def name(cls) -> str:
        return "gquery"

    @staticmethod
    def connect(*, tmpdir: Any, worker_id: str, **options: Any) -> Any:
        return ibis.gquery.connect("cpu", **options)

    def _load_data(self, **_: Any) -> None:
        for name, table in tables().items():
            self.connection.con.register(name, table)


def _module(name: str, **names: Any) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(names, __path__=[])
    sys.modules[name] = made
    return made


def pytest_configure(config: Any) -> None:
    sys.modules["ibis.backends.gquery"] = gquery.api.ibis
    _module("ibis.backends.gquery.tests")
    _module("ibis.backends.gquery.tests.conftest", TestConf=TestConf)
    config.addinivalue_line("markers", "gquery: Ibis' tests on gquery")
