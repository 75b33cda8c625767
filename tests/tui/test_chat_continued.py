"""An answer that was continued in the chat: what is kept of it, and how it is replayed."""

from __future__ import annotations

from chatting import answered, chatting, command, shown
from fake_model import FakeModel, plain
from waiting import wait_until

from edgespec.decoding.events import Finished, Stop
from edgespec.errors import BackendFailed

CUT = (plain("Half"), plain(" of"), Finished(Stop.LENGTH))
REST = (plain(" it"), Finished(Stop.END))


async def test_the_rest_of_an_answer_is_replayed_alone_as_it_was_asked() -> None:
    model = FakeModel(scripts=(CUT, REST))
    async with chatting(model) as (app, pilot):
        await command(app, pilot, "/set temperature 0.8")
        await answered(app, pilot)
        await command(app, pilot, "/set temperature 0")
        await pilot.press("ctrl+g")
        await wait_until(lambda: len(model.turns) == 2 and not app.backstage.busy)
        await pilot.press("f5")
        await wait_until(lambda: "the same text, token for token (3)" in shown(app), "the replay")
        _, rest, replay = model.turns
        assert replay.begun == rest.begun == (1, 1)
        assert replay.options.overrides == rest.options.overrides
        assert replay.options.max_tokens == 1
        table = [line.split() for line in shown(app).splitlines()]
        assert ["from", "token", "3", "as", "answered", "plain"] in table
        assert ["tokens", "1", "1"] in table


async def test_an_answer_whose_rest_failed_is_replayed_as_what_came_of_it() -> None:
    model = FakeModel(scripts=(CUT, (BackendFailed("the model failed; try again"),), CUT))
    async with chatting(model) as (app, pilot):
        await command(app, pilot, "/set temperature 0.8")
        await answered(app, pilot)
        await command(app, pilot, "/set temperature 0")
        await pilot.press("ctrl+g")
        await wait_until(lambda: "the model failed" in shown(app))
        await pilot.press("f5")
        await wait_until(lambda: "the same text, token for token (2)" in shown(app), "the replay")
        first, _, replay = model.turns
        assert replay.begun == ()
        assert replay.options.overrides == first.options.overrides
        assert ["tokens", "2", "2"] in [line.split() for line in shown(app).splitlines()]
