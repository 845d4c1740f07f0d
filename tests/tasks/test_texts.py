from autotest_env.tasks.program import load_program
from autotest_env.tasks.texts import Texts


def test_a_text_is_compiled_once_and_kept() -> None:
    program = load_program("order_total")
    texts = Texts(program, b"key")
    first, second = (bug.id for bug in program.bugs[:2])
    assert texts.plain({}) is texts.plain({})
    assert texts.plain({first: 1, second: 1}) is texts.plain({second: 1, first: 1})
    assert texts.rendered({first: 1}, 3) is texts.rendered({first: 1}, 3)
    assert texts.plain({first: 1}).code != texts.plain({second: 1}).code
