"""What was used, and what may be: usage and budgets of projects, keys and sandboxes (`project:NAME`, `key:ID`, `sandbox:ID`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import List, Optional

from .model import Model
from .plan import AwaitingGroup, BlockingGroup, Plan, Verbs, verb
from .request import asking, at


@dataclass(frozen=True)
class Consumption(Model):
    """What was used."""

    cpu_micros: int
    wall_millis: int
    memory_mib_seconds: int
    disk_bytes: int
    egress_bytes: int
    ingress_bytes: int
    executions: int


@dataclass(frozen=True)
class MeterReading(Model):
    """What one sandbox used since its making."""

    sandbox: str
    project: str
    read_at: datetime
    used: Consumption
    key: Optional[str] = None
    cost: Optional[str] = None


@dataclass(frozen=True)
class UsageReport(Model):
    """What somebody's sandboxes used, each and all together, and what that costs where the server has prices."""

    sandboxes: list[MeterReading]
    total: Consumption
    cost: Optional[str] = None
    currency: Optional[str] = None


@dataclass(frozen=True)
class Budget(Model):
    """What somebody may use."""

    subject: str
    meter: str
    at_limit: str
    used: int
    # From here on it is told.
    soft: Optional[int] = None
    # Here it ends.
    hard: Optional[int] = None
    warned_at: Optional[datetime] = None


class BudgetVerbs(Verbs):
    """What can be done with budgets."""

    @verb
    def list(self) -> Plan[List[Budget]]:
        """By subject."""
        return (yield from self._caller.fetch_all(asking("GET", at("v1", "budgets")), Budget, "budgets"))

    @verb
    def set(
        self, subject: str, meter: str, *, soft: Optional[int] = None, hard: Optional[int] = None, at_limit: Optional[str] = None,
    ) -> Plan[Budget]:
        """Sets one. At the hard limit sandboxes are paused, or ended with `at_limit="kill"`."""
        body = {"subject": subject, "meter": meter, "soft": soft, "hard": hard, "at_limit": at_limit}
        return (yield from self._caller.fetch(asking("PUT", at("v1", "budgets"), json=body), Budget))

    @verb
    def remove(self, subject: str, meter: str) -> Plan[None]:
        """Removes one."""
        yield from self._caller.done(asking("DELETE", at("v1", "budgets"), query={"subject": subject, "meter": meter}))


class Budgets(BudgetVerbs, BlockingGroup):
    """Budgets."""


class AsyncBudgets(BudgetVerbs, AwaitingGroup):
    """Budgets."""
