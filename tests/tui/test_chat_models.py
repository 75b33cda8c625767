"""Another model in the middle of a chat."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from chatting import ANSWER, answered, chatting, command, notice, running, shown, status
from fake_model import SHORT, FakeInfo, FakeModel, endless, setup_for
from textual.widgets import OptionList
from waiting import wait_until

from edgespec.decoding.events import Alternative
from edgespec.errors import NotFound, OutOfMemory
from edgespec.models import here
from edgespec.models.here import Here
from edgespec.models.installed import InstalledModel, InstalledPair, trained_dir
from edgespec.tui import models_screen
from edgespec.tui.app import ChatApp
from edgespec.tui.attach import Attached, framed
from edgespec.tui.engine import ChatSetup, Load
from edgespec.tui.models_screen import Choice, ModelsScreen
from edgespec.tui.token_detail import TokenDetail


def with_models(
    let_go: threading.Event | None = None, **models: FakeModel | Exception
) -> Callable[[ChatSetup], ChatSetup]:
    """let_go: what loading waits for."""

    def named(name: str) -> Load:
        if name not in models:
            raise NotFound(f"No pair '{name}' is here; 'edgespec list' shows those that are.")
        found = models[name]
        if isinstance(found, FakeModel):
            load = setup_for(found, notes=(f"loading {name}",)).load
            return load if let_go is None else lambda report: let_go.wait(9.0) and load(report)

        def fail(_report: Callable[[str], None]) -> FakeModel:
            raise found

        return fail  # type: ignore[return-value]

    return lambda setup: replace(setup, named=named)


def big(**changes: object) -> FakeModel:
    info = replace(FakeInfo(), pair="big", target="Big-7B", context=8192)
    return FakeModel(info=info, **changes)  # type: ignore[arg-type]


async def test_another_model_answers_from_now_on_and_reads_what_was_said() -> None:
    small, other = FakeModel(), big()
    async with chatting(small, change=with_models(big=other)) as (app, pilot):
        await answered(app, pilot)
        await command(app, pilot, "/model big")
        await wait_until(lambda: app.backstage.ready and "Big-7B" in shown(app))
        assert small.closed
        assert "loading big" in shown(app)
        await wait_until(lambda: "8192" in status(app))
        assert "big" in str(app.prompt.border_title)
        await answered(app, pilot, "on")
        assert [m.content for m in other.turns[0].messages] == ["hi", ANSWER, "on"]
        assert app.backstage.shelf.current.path[-1].model == "big"


async def test_a_model_that_cannot_be_loaded_leaves_the_one_before() -> None:
    small = FakeModel()
    fault = OutOfMemory("'big' needs 9 GB and 4 are free; take a smaller one.")
    async with chatting(small, change=with_models(big=fault)) as (app, pilot):
        await command(app, pilot, "/model big")
        await wait_until(lambda: "the model before it is loaded again" in shown(app))
        assert "needs 9 GB" in shown(app)
        await wait_until(lambda: app.backstage.ready)
        await answered(app, pilot)
        assert small.asked == ["hi"]


async def test_a_name_that_is_none_is_told_at_once_and_changes_nothing() -> None:
    async with chatting(FakeModel(), change=with_models()) as (app, pilot):
        await command(app, pilot, "/model nobody")
        assert "No pair 'nobody' is here" in shown(app)
        assert app.backstage.ready


async def test_while_a_model_loads_nothing_is_asked_and_the_answer_that_ran_is_kept() -> None:
    other, let_go = big(), threading.Event()
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model, change=with_models(let_go, big=other)) as (app, pilot):
        await running(app, pilot)
        await command(app, pilot, "/model big")
        await pilot.press("x", "enter")
        await wait_until(lambda: "still loading" in notice(app))
        assert app.prompt.text == "x"
        await wait_until(lambda: "loading big" in status(app))
        let_go.set()
        await wait_until(lambda: app.backstage.ready)
        assert not app.backstage.busy
        assert "word3" in app.backstage.shelf.current.path[-1].content
        await pilot.press("f5")
        assert "another model gave this answer: demo" in notice(app)


def named_in_turn(*models: FakeModel, let_go: threading.Event) -> Callable[[ChatSetup], ChatSetup]:
    """Models by the names of their pairs; the last one waits to be let go, once it has said that
    it loads."""

    def named(name: str) -> Load:
        model = next(model for model in models if model.info.pair == name)

        def load(report: Callable[[str], None]) -> FakeModel:
            report(f"loading {name}")
            if model is models[-1]:
                let_go.wait(9.0)
            return model

        return load  # type: ignore[return-value]

    return lambda setup: replace(setup, named=named)


async def test_of_two_models_that_load_one_after_the_other_only_the_last_is_asked() -> None:
    passed, let_go = big(), threading.Event()
    third = FakeModel(info=replace(FakeInfo(), pair="third", context=512), vocabulary="third's")
    change = named_in_turn(passed, third, let_go=let_go)
    async with chatting(FakeModel(), change=change) as (app, pilot):
        app.backstage.switch_model("big")
        app.backstage.switch_model("third")
        await wait_until(lambda: "loading third" in shown(app))
        assert passed.closed
        assert not app.backstage.ready
        await pilot.press("x", "enter")
        assert "still loading" in notice(app)
        let_go.set()
        await wait_until(lambda: app.backstage.ready)
        await pilot.press("enter")
        await wait_until(lambda: third.asked == ["x"] and not app.backstage.busy)
        answer = app.backstage.shelf.current.path[-1]
        assert answer.is_by("third", "third's")
        assert not answer.is_by("big", passed.vocabulary)


async def test_a_model_chosen_while_the_first_one_loads_is_the_one_that_is_asked() -> None:
    first, other = FakeModel(), big()
    started, let_first_go, let_go = threading.Event(), threading.Event(), threading.Event()

    def load(report: Callable[[str], None]) -> FakeModel:
        started.set()
        let_first_go.wait(9.0)
        return first

    change = named_in_turn(other, let_go=let_go)
    app = ChatApp(change(replace(setup_for(first), load=load)))  # type: ignore[arg-type]
    async with app.run_test():
        await wait_until(started.is_set)
        app.backstage.switch_model("big")
        let_first_go.set()
        await wait_until(lambda: "loading big" in shown(app))
        assert first.closed
        assert not app.backstage.ready
        let_go.set()
        await wait_until(lambda: app.backstage.ready)
        assert app.backstage.talking.answerer.name == "big"
    assert app.backstage.close(5.0)


async def test_where_the_first_of_two_loads_fails_the_second_is_the_one_that_is_asked() -> None:
    fault = OutOfMemory("'broken' needs 9 GB and 4 are free; take a smaller one.")
    other = big()
    async with chatting(FakeModel(), change=with_models(broken=fault, big=other)) as (app, pilot):
        app.backstage.switch_model("broken")
        app.backstage.switch_model("big")
        await wait_until(lambda: app.backstage.ready)
        assert app.backstage.talking.answerer.name == "big"
        await answered(app, pilot)
        assert other.asked == ["hi"]
        app.backstage.switch_model("broken")
        await wait_until(lambda: app.backstage.ready)
        assert app.backstage.talking.answerer.name == "big"


async def test_control_l_lists_the_models_and_loads_the_chosen_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = (
        Choice("demo", "small"),
        Choice("broken", "1 GB", "not a language model by itself"),
        Choice("big", "4 GB, with a draft model"),
    )
    monkeypatch.setattr(models_screen, "choices", lambda: found)
    other = big(scripts=(SHORT,))
    async with chatting(FakeModel(), change=with_models(big=other)) as (app, pilot):
        await pilot.press("ctrl+l")
        await wait_until(lambda: isinstance(app.screen, ModelsScreen))
        options = app.screen.query_one(OptionList)
        await wait_until(lambda: options.option_count == 3)
        assert options.highlighted == 0
        assert "answers now" in str(options.get_option_at_index(0).prompt)
        assert "not a language model" in str(options.get_option_at_index(1).prompt)
        await pilot.press("down", "enter")
        await wait_until(lambda: app.backstage.talking.answerer.name == "big")


async def test_the_model_that_answers_now_is_not_loaded_again_from_the_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models_screen, "choices", lambda: (Choice("demo", "small"),))
    model, again = FakeModel(scripts=(endless(),), pace_s=0.002), FakeModel()
    async with chatting(model, change=with_models(demo=again)) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+l")
        await wait_until(lambda: isinstance(app.screen, ModelsScreen))
        await wait_until(lambda: app.screen.query_one(OptionList).option_count == 1)
        await pilot.press("enter")
        await wait_until(lambda: not isinstance(app.screen, ModelsScreen))
        await pilot.pause()
        assert app.backstage.busy
        assert "loading demo" not in shown(app)


class Letters(FakeModel):
    """Counts a token a character."""

    def count_tokens(self, text: str) -> int:
        return len(text)


async def test_another_model_counts_with_its_own_tokens_what_was_sent_and_what_waits() -> None:
    other = Letters(info=replace(FakeInfo(), pair="big", target="Big-7B"))
    async with chatting(FakeModel(), change=with_models(big=other)) as (app, pilot):

        async def counted(attached: Attached, tokens: int) -> None:
            expected = [(attached.name, tokens)]
            await wait_until(
                lambda: [(one.name, one.tokens) for one in app.composer.attached] == expected
            )

        sent, waits = Attached("sent.md", "text"), Attached("waits.md", "text")
        app.composer.attach(sent)
        await counted(sent, 4)
        await answered(app, pilot)
        app.composer.attach(waits)
        await counted(waits, 4)
        await pilot.press("ctrl+e")
        await counted(sent, 4)
        await command(app, pilot, "/model big")
        await wait_until(lambda: app.backstage.talking.answerer.name == "big")
        await counted(sent, len(framed("", [sent])))
        await pilot.press("escape")
        await counted(waits, len(framed("", [waits])))
        await pilot.press("ctrl+e")
        await counted(sent, len(framed("", [sent])))


async def test_names_of_models_complete_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_screen, "choices", lambda: (Choice("big", "4 GB"),))
    async with chatting(FakeModel(), change=with_models(big=big())) as (app, pilot):
        await wait_until(lambda: app._models == ("big",))
        await pilot.press(*"/model b")
        await wait_until(lambda: app.composer.completing)
        await pilot.press("tab")
        assert app.prompt.text == "/model big"


def test_the_demo_is_listed_where_its_package_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "found_models", lambda: ())
    monkeypatch.setattr(here, "find_demo", lambda: Path("demo.gguf"))
    assert [choice.name for choice in models_screen.choices()] == ["demo"]
    monkeypatch.setattr(here, "find_demo", lambda: None)
    assert models_screen.choices() == ()


def test_a_pair_of_which_files_are_gone_says_what_makes_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there.gguf"
    there.touch()

    def pair(name: str, target: Path, draft: Path) -> InstalledPair:
        models = [InstalledModel("org/M", "main", (file,), 1000) for file in (target, draft)]
        return InstalledPair(name, "gguf", *models, 0.0)

    gone, trained = tmp_path / "gone.gguf", trained_dir() / "made" / "gone.gguf"
    pairs = (
        pair("whole", there, there),
        pair("headless", gone, there),
        pair("draftless", there, gone),
        pair("made", there, trained),
        pair("moved", gone, trained),
    )
    monkeypatch.setattr(here, "models_here", lambda: Here(False, pairs, ()))
    told = [(one.about, one.fault) for one in models_screen.choices()]
    assert told == [
        ("2 kB, with a draft model", ""),
        ("2 kB", "incomplete, its target is gone: 'edgespec pull headless' fetches it again"),
        (
            "2 kB, incomplete, its draft model is gone: 'edgespec pull draftless' fetches it again",
            "",
        ),
        (
            "2 kB, incomplete, its draft model is gone: 'edgespec train TARGET --out made' makes it"
            " anew",
            "",
        ),
        (
            "2 kB",
            "incomplete, its target is gone: put it back, or delete the pair with 'edgespec rm"
            " moved'",
        ),
    ]


async def test_the_tokens_of_a_model_of_the_same_name_with_another_vocabulary_are_foreign() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    other = FakeModel(vocabulary="another digest")
    async with chatting(model, change=with_models(demo=other)) as (app, pilot):
        await running(app, pilot)
        await command(app, pilot, "/model demo")
        await wait_until(lambda: app.backstage.ready)
        key, steering = app.backstage.shelf.current.path[-1].id, app.backstage.steering
        for key_pressed in ("ctrl+g", "f5"):
            app._forget_notice()
            await pilot.press(key_pressed)
            assert "another model of this name gave this answer" in notice(app)
        app._forget_notice()
        steering.resteer(key, 1, Alternative(900, -1.0, " one"))
        assert "another model of this name gave this answer" in notice(app)
        await pilot.press("f3")
        app.inspector.select(key, 1, " word1")
        why = "with another vocabulary"
        await wait_until(lambda: why in " ".join(str(app.query_one(TokenDetail).content).split()))
        assert other.turns == other.explained == []


async def test_where_models_cannot_be_looked_for_the_chat_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> tuple[Choice, ...]:
        raise ValueError("Invalid IPv6 URL")

    monkeypatch.setattr(models_screen, "choices", fail)
    async with chatting(FakeModel()) as (app, pilot):
        await wait_until(lambda: "Invalid IPv6 URL" in shown(app))
        await pilot.press("ctrl+l")
        await wait_until(lambda: isinstance(app.screen, ModelsScreen))
        said = app.screen.query_one("#said")
        await wait_until(lambda: "Invalid IPv6 URL" in str(said.render()))
        await pilot.press("escape")
        await answered(app, pilot)
        assert ANSWER.split(".")[0] in shown(app)


async def test_an_answer_of_another_model_is_not_continued_explained_or_rewritten() -> None:
    other = big()
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model, change=with_models(big=other)) as (app, pilot):
        await running(app, pilot)
        await command(app, pilot, "/model big")
        await wait_until(lambda: app.backstage.ready)
        key, steering = app.backstage.shelf.current.path[-1].id, app.backstage.steering
        why = "another model gave this answer: demo"
        await pilot.press("ctrl+g")
        assert why in notice(app)
        app._forget_notice()
        steering.resteer(key, 1, Alternative(900, -1.0, " one"))
        assert why in notice(app)
        await pilot.press("f3")
        app.inspector.select(key, 1, " word1")
        await wait_until(lambda: why in str(app.query_one(TokenDetail).content))
        assert not app.backstage.busy
        assert other.turns == other.explained == []
        await pilot.press("ctrl+r")
        await wait_until(lambda: not app.backstage.busy and other.turns)
        assert app.backstage.shelf.current.path[-1].model == "big"


async def test_a_token_that_was_pointed_at_while_a_model_loads_is_asked_for_once_it_is_loaded() -> (
    None
):
    let_go = threading.Event()
    change = with_models(let_go, demo=FakeModel())
    async with chatting(FakeModel(), (130, 30), change=change) as (app, pilot):
        await answered(app, pilot)
        await command(app, pilot, "/model demo")
        await pilot.press("f3")
        app.inspector.select(app.backstage.shelf.current.path[-1].id, 1, " means")
        await wait_until(lambda: "still loading" in str(app.query_one(TokenDetail).content))
        let_go.set()
        await wait_until(lambda: app.inspector.alternatives.choices, "the alternatives")
