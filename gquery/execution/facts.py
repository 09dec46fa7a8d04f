"""What is known of a pipeline when it is specialized: measured where it runs, estimated where it is prepared or explained."""

from __future__ import annotations

from collections.abc import Mapping

from gquery.device.profile import DeviceProfile, get_profile, profile_for
from gquery.execution.decision import Choice
from gquery.execution.feedback import RunFeedback
from gquery.execution.stage_feedback import StageFeedback
from gquery.execution.state import ExecutionContext
from gquery.expression.frozen import frozen_open
from gquery.kernels.targets.capabilities import Capabilities, capabilities
from gquery.operators.base import JoinIndex
from gquery.operators.thread_states import StateForm


@frozen_open
class Facts:
    """``rows`` that the source of the stage gives, and the tables that it probes, by their stages. ``copied_bytes`` is the size
    of the largest of these tables that the interpreter would have to bring from a device first. ``has_room``: there is memory
    for a build to be partitioned first. A ``choice`` that is given is not made again. ``asks_kernels``: kernels that are there
    already are a reason to use them. ``merges``: the states of several ranks become one, so that their words must be alike. A
    ``form`` of groups that is given is not asked for again."""

    context: ExecutionContext
    feedback: RunFeedback
    stage: int
    rows: int
    joins: Mapping[int, JoinIndex]
    copied_bytes: int = 0
    has_room: bool = True
    choice: Choice | None = None
    asks_kernels: bool = True
    merges: bool = False
    form: StateForm | None = None

    @property
    def known(self) -> StageFeedback:
        """What earlier runs have told of the stage."""
        return self.feedback.stage(self.stage)

    @property
    def able(self) -> Capabilities:
        """What the target of compiled pipelines can do."""
        return capabilities(self.context.target)

    @property
    def profile(self) -> DeviceProfile:
        """The sizes of what that target runs on."""
        device = self.context.device
        return get_profile(device) if device.is_cuda is self.able.has_own_memory else profile_for(self.context.target)
