"""The rules for what members of a share group see: each is broken once, and found."""

from __future__ import annotations

from ottla.compat_tests.raw.share_groups.wire_share import ACCEPT, REJECT, RELEASE

from .helpers.share_history import (
    Answer,
    DeliveredRecords,
    Said,
    SaidOfRecords,
    ShareEvent,
    WrittenRecords,
    violations,
)

LIMIT = 3


def said(offset: int, kind: int, count: int = 1, answer: Answer = Answer.DONE) -> SaidOfRecords:
    return SaidOfRecords([Said(offset, kind, count)], answer)


def found(*history: ShareEvent) -> list[str]:
    """The violations, without where they are."""
    return [each.rpartition(": ")[2] for each in violations(history, LIMIT)]


def test_a_history_without_fault() -> None:
    """One record is accepted, one rejected, one comes again and is accepted, one is delivered up to the limit."""
    assert not found(
        WrittenRecords(0, 3),
        DeliveredRecords(0, 3, 1, 0),
        said(0, ACCEPT),
        SaidOfRecords([Said(1, REJECT, 1), Said(2, RELEASE, 1)], Answer.DONE),
        DeliveredRecords(2, 2, 2, 4),
        said(2, ACCEPT, 2),
        DeliveredRecords(3, 3, 2, 6),
        DeliveredRecords(3, 3, 3, 7),
    )


def test_an_accepted_record_is_delivered_again() -> None:
    history = [WrittenRecords(0, 0), DeliveredRecords(0, 0, 1, 0), said(0, ACCEPT)]
    assert found(*history, DeliveredRecords(0, 0, 2, 3)) == ["accepted at event 2, delivered again"]


def test_a_rejected_record_is_delivered_again() -> None:
    history = [WrittenRecords(0, 5), DeliveredRecords(0, 5, 1, 0), *(said(each, REJECT) for each in range(6))]
    assert found(*history, DeliveredRecords(4, 5, 2, 8)) == [
        "rejected at event 6, delivered again",
        "rejected at event 7, delivered again",
    ]


def test_a_fetch_that_was_on_its_way_may_bring_what_was_acknowledged_meanwhile() -> None:
    """Its response was made before: the member was late to read it, and its lock had ended."""
    history = [WrittenRecords(0, 0), DeliveredRecords(0, 0, 1, 0), said(0, ACCEPT)]
    assert not found(*history, DeliveredRecords(0, 0, 1, 2))


def test_a_record_may_come_again_after_an_acknowledgement_that_was_not_answered_or_refused() -> None:
    for answer in (Answer.UNKNOWN, Answer.REFUSED):
        history = [WrittenRecords(0, 0), DeliveredRecords(0, 0, 1, 0), said(0, ACCEPT, answer=answer)]
        assert not found(*history, DeliveredRecords(0, 0, 2, 3), said(0, ACCEPT, 2))


def test_a_written_record_is_never_delivered() -> None:
    assert found(WrittenRecords(0, 1), DeliveredRecords(0, 0, 1, 0), said(0, ACCEPT)) == ["written, and lost"]


def test_a_released_record_is_never_delivered_again() -> None:
    assert found(WrittenRecords(0, 0), DeliveredRecords(0, 0, 1, 0), said(0, RELEASE)) == ["written, and lost"]


def test_a_record_whose_acknowledgement_was_refused_is_never_delivered_again() -> None:
    history = [WrittenRecords(0, 0), DeliveredRecords(0, 0, 1, 0)]
    assert found(*history, said(0, ACCEPT, answer=Answer.REFUSED)) == ["written, and lost"]
    assert not found(*history, said(0, ACCEPT, answer=Answer.UNKNOWN))


def test_a_record_is_delivered_more_often_than_the_limit() -> None:
    history = [WrittenRecords(0, 0), *(DeliveredRecords(0, 0, count, count) for count in (1, 2, 3))]
    assert not found(*history)
    assert found(*history, DeliveredRecords(0, 0, 4, 4)) == ["more deliveries than 3"]


def test_a_delivery_count_falls_after_a_release() -> None:
    history = [WrittenRecords(0, 0), DeliveredRecords(0, 0, 2, 0), said(0, RELEASE, 2)]
    for count in (1, 2):
        again = DeliveredRecords(0, 0, count, 3)
        assert found(*history, again, said(0, ACCEPT, count)) == ["released at delivery 2, its count fell"]
    assert not found(*history, DeliveredRecords(0, 0, 1, 1), said(0, ACCEPT, 1))
    assert not found(*history[:2], said(0, RELEASE, 2, Answer.UNKNOWN), DeliveredRecords(0, 0, 1, 3), said(0, ACCEPT))
