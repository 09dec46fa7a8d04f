"""Tasks of Dask: the fragments of a run, as the connection asks for them. See `cluster.fragments`."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.cluster.fragments import Ended, Outcome, RankThread, Received
from gquery.cluster.moving import Packed
from gquery.cluster.worker import PackedProgram, Request, run_rank, session_of
from gquery.distributed.transport import RankAbortedError
from gquery.errors import InterruptError


def given(plan: PackedProgram) -> PackedProgram:
    """A plan, as what a task has made: it can be made again."""
    return plan


def fragment(request: Request, plan: PackedProgram, memory: dict[str, Packed], received: Received) -> Outcome:
    """The next fragment of a rank: what it hands over, or what it has made. A task."""
    for handed in received[-1] if received else ():
        if isinstance(handed, Ended):
            return handed
    session = session_of(request.session, plan.engine)
    at = (request.run, request.rank)

    def begun() -> RankThread:
        return RankThread(
            request.rank, plan.size, lambda comm: run_rank(session, request, plan.key, lambda: (plan, memory), comm)
        )

    with session.lock:
        rank = session.ranks.get(at)
        if rank is not None and not rank.can_go_on(received):  # it is further: this fragment is made again
            rank.stop()
            rank = None
        if rank is None:
            rank = begun()
        session.ranks[at] = rank
    ended = True
    try:
        made = rank.advance(received)
        ended = isinstance(made, Ended)
        return made
    except (RankAbortedError, InterruptError):
        with session.lock:
            other = session.ranks.get(at)
        if other is None or other is rank:
            raise
        rank = begun()  # an earlier fragment is made again meanwhile, by a rank that has taken the place of this one
        try:
            return rank.advance(received)
        finally:
            rank.stop()
    finally:
        with session.lock:
            if ended and session.ranks.get(at) is rank:
                del session.ranks[at]


def outcome(made: Sequence[Outcome]) -> list[Packed] | None:
    """What the ranks have made; None where they have not ended. A task."""
    return [m.made for m in made if isinstance(m, Ended)] if all(isinstance(m, Ended) for m in made) else None
