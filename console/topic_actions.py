"""Actions on a topic: create it, add partitions, change settings, delete records up to an offset, delete it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..base.wording import counted
from ..handlers.config_entries import ConfigSource
from ..view.own.broker_view import NotFoundError
from ..wire.api_keys import ApiKey
from ..wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ..wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from ..wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ..wire.messages.delete_topics import DeleteTopicsRequest
from ..wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from ..wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ..wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from . import action_commands
from .actions import ActionPlan, ActionResult, FormField, Given, KafkaAction, check_typed, number
from .kafka_requests import AnyBrokerTarget, ControllerTarget, KafkaRequests, LeaderTarget, check
from .offsets import Bounds, bounds
from .questions import WrongQuestionError

TIMEOUT_MS = 30_000
_TOPIC_RESOURCE = 2
_SET, _DELETE = 0, 1
_MOST_PARTITIONS = 100_000
_MOST_REPLICAS = (1 << 15) - 1


class CreateTopic(KafkaAction):
    """A new topic."""

    title, here = "Create a topic", "Topics"
    api = ApiKey.CREATE_TOPICS

    def fields(self, given: Given) -> Sequence[FormField]:
        return (
            FormField("name", "Name", given.get("name", "")),
            FormField("partitions", "Partitions", given.get("partitions", ""), "number", hint="the broker's default"),
            FormField("replicas", "Replicas", given.get("replicas", ""), "number", hint="the broker's default"),
            FormField("configs", "Settings", given.get("configs", ""), "lines", hint="retention.ms=3600000"),
        )

    async def plan(self, given: Given) -> ActionPlan | None:
        if not given.get("name", "").strip():
            return None
        topic = self._topic(given)
        await self._create(topic, validate_only=True)
        configs = {config.name: config.value or "" for config in topic.configs}
        partitions = topic.num_partitions if topic.num_partitions > 0 else None
        replicas = topic.replication_factor if topic.replication_factor > 0 else None
        command = action_commands.create_topic(self._server(), topic.name, partitions, replicas, configs)
        return ActionPlan(f"The topic {topic.name} is made.", "Create topic", command)

    async def carry_out(self, given: Given) -> ActionResult:
        topic = self._topic(given)
        made = await self._create(topic, validate_only=False)
        what = f"The topic {topic.name} was made."
        if made.num_partitions > 0:  # an older broker does not say
            partitions = counted(made.num_partitions, "partition")
            what = f"{what[:-1]}, with {partitions}, {counted(made.replication_factor, 'replica')} of each"
            what += f" and {counted(len(topic.configs), 'topic setting')}." if topic.configs else "."
        return ActionResult(what, topic_address(topic.name), topic.name)

    def _topic(self, given: Given) -> CreatableTopic:
        partitions = number(given, "partitions", "a number of partitions", 1, _MOST_PARTITIONS)
        replicas = number(given, "replicas", "a number of replicas", 1, _MOST_REPLICAS)
        configs = []
        for text in given.get("configs", "").splitlines():
            name, equals, value = text.strip().partition("=")
            if text.strip() and not (equals and name):
                raise WrongQuestionError(
                    f"{text.strip()} is not a setting: they are NAME=VALUE, one a line.", "configs"
                )
            if text.strip():
                configs.append(CreatableTopicConfig(name=name.strip(), value=value.strip()))
        return CreatableTopic(
            name=given.get("name", "").strip(),
            num_partitions=-1 if partitions is None else partitions,
            replication_factor=-1 if replicas is None else replicas,
            configs=configs,
        )

    async def _create(self, topic: CreatableTopic, *, validate_only: bool) -> CreatableTopicResult:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=validate_only)
        response = await self._kafka.ask(request, ControllerTarget())
        result: CreatableTopicResult = response.topics[0]
        check(result.error_code, result.error_message)
        return result


class AddPartitions(KafkaAction):
    """More partitions for a topic."""

    title, here = "Add partitions", "Topics"
    api = ApiKey.CREATE_PARTITIONS

    def fields(self, given: Given) -> Sequence[FormField]:
        return (FormField("count", "Partitions in all", given.get("count", ""), "number"),)

    async def plan(self, given: Given) -> ActionPlan | None:
        topic = await described(self._kafka, given["topic"])
        count = number(given, "count", "a number of partitions", 1, _MOST_PARTITIONS)
        if count is None:
            return None
        await self._add(given["topic"], count, validate_only=True)
        return ActionPlan(
            f"The topic {topic.name}, which has {len(topic.partitions)}, gets {count} partitions in all.",
            "Add partitions",
            action_commands.add_partitions(self._server(), given["topic"], count),
            warnings=(
                "Records with a key go to other partitions from then on. Partitions cannot be taken away again.",
            ),
        )

    async def carry_out(self, given: Given) -> ActionResult:
        name = given["topic"]
        count = number(given, "count", "a number of partitions", 1, _MOST_PARTITIONS)
        if count is None:
            raise WrongQuestionError("How many partitions was not said.", "count")
        before = len((await described(self._kafka, name)).partitions)
        await self._add(name, count, validate_only=False)
        added = counted(count - before, "partition")
        what = (
            f"{added} {'was' if count - before == 1 else 'were'} added to {name}, which had {before}, and has {count}."
        )
        return ActionResult(what, topic_address(name), name)

    async def _add(self, name: str, count: int, *, validate_only: bool) -> None:
        topics = [CreatePartitionsTopic(name=name, count=count, assignments=None)]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=TIMEOUT_MS, validate_only=validate_only)
        response = await self._kafka.ask(request, ControllerTarget())
        for result in response.results:
            check(result.error_code, result.error_message)


class ConfigureTopic(KafkaAction):
    """A setting of a topic, set or given back to its default."""

    title, here = "Change a setting", "Topics"
    api = ApiKey.INCREMENTAL_ALTER_CONFIGS

    def fields(self, given: Given) -> Sequence[FormField]:
        ways = (("set", "set it"), ("delete", "back to the default"))
        return (
            FormField("name", "Setting", given.get("name", ""), hint="retention.ms"),
            FormField("way", "What to do", given.get("way", "set"), "choice", ways),
            FormField("value", "Value", given.get("value", "")),
        )

    async def facts(self, given: Given) -> Sequence[tuple[str, str]]:
        name = given.get("name", "").strip()
        setting = await self._setting(given["topic"], name)
        if setting is None:
            return ()
        source = ConfigSource(setting.config_source).name
        return (
            (name, setting.value or ""),
            ("From", source.removesuffix("_CONFIG").replace("_", " ").lower()),
            ("Description", setting.documentation or ""),
        )

    async def plan(self, given: Given) -> ActionPlan | None:
        topic, name = given["topic"], given.get("name", "").strip()
        if not name or ("value" not in given and given.get("way") != "delete"):
            return None
        now = await self._now(topic, name)
        change = _change(given)
        await self._alter(topic, change, validate_only=True)
        if change.config_operation == _DELETE:
            command = action_commands.unset_config(self._server(), topic, name)
            what, after = f"The setting {name} of {topic} goes back to its default.", "the default"
        else:
            command = action_commands.set_config(self._server(), topic, name, change.value or "")
            what, after = f"The setting {name} of {topic} is set.", change.value or ""
        return ActionPlan(
            what, "Change setting", command, columns=("Setting", "Now", "Then"), rows=((name, now, after),)
        )

    async def carry_out(self, given: Given) -> ActionResult:
        topic, change = given["topic"], _change(given)
        before = await self._now(topic, change.name)
        await self._alter(topic, change, validate_only=False)
        after = "has its default again" if change.config_operation == _DELETE else f"is {change.value}"
        return ActionResult(f"{change.name} of {topic} was {before}, and {after}.", topic_address(topic), topic)

    async def _now(self, topic: str, name: str) -> str | None:
        setting = await self._setting(topic, name)
        return None if setting is None else setting.value

    async def _setting(self, topic: str, name: str) -> DescribeConfigsResourceResult | None:
        """Raises KafkaError, also where there is no such topic."""
        resource = DescribeConfigsResource(
            resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=[name] if name else None
        )
        request = DescribeConfigsRequest(resources=[resource], include_documentation=True)
        (result,) = (await self._kafka.ask(request, AnyBrokerTarget())).results
        check(result.error_code, result.error_message)
        return next((config for config in result.configs if config.name == name), None)

    async def _alter(self, topic: str, change: AlterableConfig, *, validate_only: bool) -> None:
        resource = AlterConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        response = await self._kafka.ask(request, AnyBrokerTarget())
        for result in response.responses:
            check(result.error_code, result.error_message)


def _change(given: Given) -> AlterableConfig:
    name = given.get("name", "").strip()
    if not name:
        raise WrongQuestionError("Which setting was not said.", "name")
    if given.get("way") == "delete":
        return AlterableConfig(name=name, config_operation=_DELETE, value=None)
    return AlterableConfig(name=name, config_operation=_SET, value=given.get("value", "").strip())


class DeleteRecords(KafkaAction):
    """The oldest records of one partition, up to an offset."""

    title, here = "Delete records", "Topics"
    api = ApiKey.DELETE_RECORDS

    def fields(self, given: Given) -> Sequence[FormField]:
        return (
            FormField("partition", "Partition", given.get("partition", ""), "number"),
            FormField("offset", "Records before the offset", given.get("offset", ""), "number", hint="end, for all"),
        )

    async def plan(self, given: Given) -> ActionPlan | None:
        await alterable(self._kafka, given["topic"])
        if not given.get("partition", "").strip() or not given.get("offset", "").strip():
            return None
        partition, offset = _records(given)
        found = await self._bounds(given["topic"], partition)
        upto = found.end if offset is None else offset
        count = max(0, min(upto, found.end) - found.start)
        return ActionPlan(
            f"The records of {given['topic']}-{partition} before offset {upto} are deleted: {count} offsets.",
            "Delete records",
            action_commands.delete_records(self._server(), given["topic"], partition, offset),
            warnings=("Deletion is permanent.",),
            typed=given["topic"],
            columns=("Partition", "First offset now", "First offset then", "End"),
            rows=((partition, found.start, max(found.start, upto), found.end),),
        )

    async def carry_out(self, given: Given) -> ActionResult:
        name = given["topic"]
        await alterable(self._kafka, name)
        check_typed(given, name)
        number, offset = _records(given)
        before = await self._bounds(name, number)
        partition = DeleteRecordsPartition(partition_index=number, offset=-1 if offset is None else offset)
        topics = [DeleteRecordsTopic(name=name, partitions=[partition])]
        response = await self._kafka.ask(
            DeleteRecordsRequest(topics=topics, timeout_ms=TIMEOUT_MS), LeaderTarget(name, number)
        )
        (result,) = response.topics[0].partitions
        check(result.error_code)
        low = result.low_watermark
        count, left = max(low - before.start, 0), max(before.end - low, 0)
        rest = (
            f"{left} are left, from {low} to {before.end - 1}."
            if left > 1
            else "1 is left."
            if left
            else "None is left."
        )
        what = f"The records of {name}-{number} before offset {low} were deleted: {counted(count, 'offset')}. {rest}"
        return ActionResult(what, topic_address(name), name)

    async def _bounds(self, topic: str, partition: int) -> Bounds:
        key = TopicPartition(topic, partition)
        return (await bounds(self._kafka, [key]))[key]


def _records(given: Given) -> tuple[int, int | None]:
    """Partition, and the offset to delete up to; None for the end."""
    partition = number(given, "partition", "a partition", 0, (1 << 31) - 1)
    if partition is None:
        raise WrongQuestionError("Of which partition was not said.", "partition")
    if given.get("offset", "").strip() in ("end", "-1"):
        return partition, None
    offset = number(given, "offset", "an offset")
    if offset is None:
        raise WrongQuestionError("Up to which offset was not said.", "offset")
    return partition, offset


class DeleteTopic(KafkaAction):
    """A topic with all that is in it."""

    title, here = "Delete a topic", "Topics"
    api = ApiKey.DELETE_TOPICS

    async def plan(self, given: Given) -> ActionPlan | None:
        topic = await alterable(self._kafka, given["topic"])
        count = len(topic.partitions)
        return ActionPlan(
            f"The topic {given['topic']} is deleted, with its {counted(count, 'partition')} and all that is in them.",
            "Delete topic",
            action_commands.delete_topic(self._server(), given["topic"]),
            warnings=("Deletion is permanent.",),
            typed=given["topic"],
        )

    async def carry_out(self, given: Given) -> ActionResult:
        name = given["topic"]
        count = len((await alterable(self._kafka, name)).partitions)
        check_typed(given, name)
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS)
        response = await self._kafka.ask(request, ControllerTarget())
        for result in response.responses:
            check(result.error_code, result.error_message)
        return ActionResult(
            f"The topic {name} was deleted, with its {counted(count, 'partition')}.", "/topics", "Topics"
        )


async def described(kafka: KafkaRequests, name: str) -> MetadataResponseTopic:
    """A topic. Raises NotFoundError, KafkaError."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    response = await kafka.ask(request, AnyBrokerTarget())
    topic: MetadataResponseTopic = response.topics[0]
    if topic.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION):
        raise NotFoundError(f"There is no topic {name}.")
    check(topic.error_code)
    return topic


async def alterable(kafka: KafkaRequests, name: str) -> MetadataResponseTopic:
    """A topic whose records may be deleted or written. Raises NotFoundError, KafkaError, for one of the brokers' own, too."""
    topic = await described(kafka, name)
    if topic.is_internal:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is the brokers' own: the console leaves it alone.")
    return topic


def topic_address(name: str) -> str:
    return f"/topics/{quote(name, safe='')}"
