"""The take-over of a pre-KRaft broker's log directories by a node that becomes a quorum of one.

Such a broker had its cluster's metadata in its first log directory (``old_state``). They become the records that the new cluster
begins with. The metadata of a broker of Apache Kafka, in ZooKeeper mode or KRaft, are not in its log directories: then the topics
are those whose logs there are (``adopted_logs``).

The steps, each of which is on stable storage before the next one:

1. ``partition.metadata`` is written where a log lacks it: a log without a topic id is one of no topic in a cluster of KRaft;
2. the log directories are formatted (``format_folders``), with the records in ``bootstrap.checkpoint``. The ids of the cluster,
   of the node and of directories stay;
3. the logs of topics whose deletion was under way are named as deleted ones are;
4. the old metadata are set aside.

As long as the old metadata are there they are what counts, and a start does all of it again, also after an Ottla before KRaft
has run in between. From step 4 on the metadata log counts, which does not begin before that. Nothing is removed but what clients
had deleted.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import random
from collections.abc import Iterable, Mapping, Sequence

from ...base.config import Config
from ...base.errors import KafkaError
from ...base.wording import counted
from ...controller.configs.broker_passwords import BrokerPasswords
from ...controller.quorum.adopted_logs import AdoptionRules, adopted_delta
from ...controller.quorum.snapshot_records import records_beside_levels
from ...controller.settings import ControllerSettings
from ...controller.zookeeper.leaving.old_state import (
    KEPT_PREFIX,
    StateTree,
    finish_setting_aside,
    has_kept_state,
    has_state,
    is_being_set_aside,
    read_state,
    set_state_aside,
)
from ...controller.zookeeper.leaving.tree_image import (
    ConvertedImage,
    MoveRules,
    UnmovableStateError,
    cluster_id_of,
    knows_topics,
    tree_image,
)
from ...handlers.auto_creation import coordinator_topics
from ...log.checkpoints import (
    META_PROPERTIES,
    CorruptFileError,
    MetaProperties,
    read_meta_properties,
)
from ...log.disk import Disk, join
from ...log.files import (
    BOOTSTRAP_CHECKPOINT,
    LOG_SUFFIX,
    METADATA_PARTITION_DIR,
    log_delete_dir_name,
    log_dir_name,
    log_stray_dir_name,
)
from ...log.log_directories import LogStartError
from ...log.metadata_snapshots import known_voters
from ...log.partition_log import PartitionLog
from ...metadata.image import ClusterImage
from ...metadata.types import UNASSIGNED_DIRECTORY
from ...transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from ...wire.schema import ZERO_UUID
from ..identity import is_lone
from .directory_ids import random_directory_id
from .format_directories import FormatError, Formatting, format_folders, levels_of
from .found_logs import FoundLog, found_logs, has_logs, known_topic_id, write_topic_ids

logger = logging.getLogger(__name__)

_METADATA_TOPIC = "__cluster_metadata"


class TakeOver:
    """See the module. The log directories are locked, and nobody has opened a log of theirs."""

    def __init__(self, disk: Disk, config: Config, directories: Sequence[str], metadata_directory: str) -> None:
        """Raises LogStartError where the directories belong to a ZooKeeper, or cannot be understood; OSError."""
        self._disk = disk
        self._config = config
        self._log_directories = directories
        self._directories = [*dict.fromkeys((*directories, metadata_directory))]
        self._metadata_directory = metadata_directory
        try:
            self._metas = {each: read_meta_properties(disk, each) for each in self._directories if disk.is_dir(each)}
        except CorruptFileError as error:
            raise LogStartError(str(error)) from None
        self._check_no_zookeeper()
        self._state_directory = self._find_state()
        self._taken = [each for each in self._metas if is_being_set_aside(disk, each)]
        self._check_metadata_directory()
        self._tree: StateTree | None = None
        self.broker_id: int | None = None
        """Whose the directories are; None where they do not say."""
        self.cluster_id: str | None = None
        """Likewise."""
        try:
            self.is_due = self._find_out()
            """Whether there is something to take over; else the directories are of a node that is its own quorum, or nobody's."""
        except CorruptFileError as error:
            raise LogStartError(str(error)) from None
        if self.is_due:
            self._identify()

    @property
    def _known_metas(self) -> Mapping[str, MetaProperties]:
        return {directory: meta for directory, meta in self._metas.items() if meta is not None}

    def _find_out(self) -> bool:
        if self._state_directory is not None or self._taken:
            return True
        meta = self._metas.get(self._metadata_directory)
        if meta is not None and meta.version == 1:
            # With roles it is the file of the node that says who votes, and a tool that has formatted the folder for that.
            return is_lone(self._config) and not self._is_own_voter(meta)
        return any(meta.version == 0 for meta in self._known_metas.values()) or has_logs(self._disk, self._metas)

    @property
    def needs_logs(self) -> bool:
        """Whether nothing but the logs says which topics there are: ``run`` has to be given them."""
        if self._taken or not self.is_due:
            return False
        return (self._tree is None or not knows_topics(self._tree)) and has_logs(self._disk, self._metas)

    def run(
        self, wanted: Formatting, randomness: random.Random, now_ms: int, logs: Iterable[PartitionLog] = ()
    ) -> None:
        """Do all of it. ``wanted`` is the formatting of a new node that has the id and the cluster's id found here.

        ``logs`` are those that ``needs_logs`` asks for. Raises LogStartError, OSError.
        """
        assert self.is_due, "is_due is checked first"
        # Where setting the old metadata aside has begun, all steps before that are on stable storage: only that one is finished.
        if not self._taken:
            try:
                self._take_over(wanted, randomness, now_ms, list(logs))
            except (FormatError, UnmovableStateError) as error:
                raise LogStartError(str(error)) from None
            except KafkaError as error:
                raise LogStartError(error.message or error.code.name) from None
        for directory in self._taken:
            finish_setting_aside(self._disk, directory)

    # --- what there is ------------------------------------------------------------------------------------------------

    def _check_no_zookeeper(self) -> None:
        for directory, meta in self._known_metas.items():
            if meta.zookeeper is not None:
                raise LogStartError(
                    f"the log directory {directory} belongs to broker {meta.broker_id} of a cluster whose state is in the "
                    f"ZooKeeper {meta.zookeeper}: it is started with zookeeper.connect"
                )

    def _find_state(self) -> str | None:
        """The directory with the old metadata. Raises LogStartError where it cannot be said which ones are meant."""
        found = [each for each in self._metas if has_state(self._disk, each)]
        if len(found) > 1:
            raise LogStartError(f"the cluster's state is in more than one log directory: {', '.join(found)}")
        for directory in found:
            if has_kept_state(self._disk, directory) or is_being_set_aside(self._disk, directory):
                raise LogStartError(
                    f"{directory} has a directory __cluster_state of an Ottla before KRaft, and files {KEPT_PREFIX}* that "
                    "were set aside before it was made: an older Ottla has run here without them. Remove the directory "
                    "to use the metadata log, or the files to use the directory"
                )
        return found[0] if found else None

    def _check_metadata_directory(self) -> None:
        """Whether the directory of the metadata log may have gone. A take-over leaves ``bootstrap.checkpoint`` there before
        it says anywhere that the node is one of KRaft. Raises LogStartError.
        """
        if self._state_directory is not None or self._taken:
            return
        formatted = [directory for directory, meta in self._known_metas.items() if meta.version == 1]
        lacking = self._metadata_directory
        if formatted and lacking not in formatted and not self._disk.exists(join(lacking, BOOTSTRAP_CHECKPOINT)):
            raise LogStartError(
                f"the log directory {formatted[0]} belongs to a KRaft node, and {lacking}, where its metadata log should be, "
                "does not. Its disk may be missing, or metadata.log.dir or the order of log.dirs may have changed",
                may_pass=True,
            )

    def _is_own_voter(self, meta: MetaProperties) -> bool:
        """Whether the metadata log is that of a quorum which the node is in; False for one whose voters are a property.

        The property is not there: such a log was another broker's, as one of Apache Kafka is that has never been in a cluster
        with others. Raises LogStartError where the voters are other nodes, CorruptFileError, OSError.
        """
        ids = known_voters(self._disk, self._metadata_directory)
        if ids is None:
            return False
        if meta.broker_id not in ids:
            raise LogStartError(
                f"{self._metadata_directory} is of node {meta.broker_id} of a cluster with the controllers "
                f"{', '.join(map(str, ids))}: it is started with process.roles. To make it a separate cluster, with the "
                f"topics of its logs, remove {META_PROPERTIES} and {METADATA_PARTITION_DIR} from it first"
            )
        return True

    def _identify(self) -> None:
        """Raises LogStartError, KafkaError."""
        if self._state_directory is not None:
            self._tree = read_state(self._disk, self._state_directory)
            try:
                self.cluster_id = cluster_id_of(self._tree)
            except UnmovableStateError as error:
                raise LogStartError(str(error)) from None
        for meta in self._known_metas.values():
            self.cluster_id = self.cluster_id or meta.cluster_id
            if self.broker_id is None:
                self.broker_id = meta.broker_id

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _take_over(
        self, wanted: Formatting, randomness: random.Random, now_ms: int, logs: Sequence[PartitionLog]
    ) -> None:
        """Raises FormatError, UnmovableStateError, KafkaError, LogStartError, OSError."""
        disk, found, ids = self._disk, found_logs(self._disk, self._metas), self._directory_ids(randomness)
        levels = levels_of(wanted)
        moved = self._moved(wanted.node_id, levels, found, ids, randomness)
        image = moved.image
        if self._tree is None or not knows_topics(self._tree):
            rules = self._adoption_rules(wanted.node_id, ids)
            image = image.apply(adopted_delta(logs, rules, randomness))
        self._write_topic_ids(image, found, logs)
        for directory in self._metas:
            self._set_metadata_log_aside(directory, randomness)
        voters = [
            voter._replace(directory_id=ids[self._metadata_directory]) if voter.node_id == wanted.node_id else voter
            for voter in wanted.voters
        ]
        wanted = dataclasses.replace(
            wanted,
            voters=voters,
            credentials=() if self._tree is not None else wanted.credentials,  # the tree says which users there are
            records=list(records_beside_levels(image)),
            is_anew=True,
            directory_ids=ids,
        )
        format_folders(disk, wanted, randomness, now_ms, logger.info)
        self._finish_deletions(moved.deleted, found, randomness)
        for line in moved.left_behind:
            logger.error("The cluster continues without %s", line)
        if self._state_directory is not None:
            set_state_aside(disk, self._state_directory)
        logger.info(
            "Cluster %s is one of KRaft from now on, with node %d as its quorum (%s)",
            wanted.cluster_id,
            wanted.node_id,
            counted(len(image.topics), "topic"),
        )

    def _directory_ids(self, randomness: random.Random) -> dict[str, bytes]:
        """Those that the directories have, and new ones."""
        metas = self._known_metas
        return {
            directory: (metas[directory].directory_id if directory in metas else None)
            or random_directory_id(randomness)
            for directory in self._directories
        }

    def _moved(
        self,
        node_id: int,
        levels: Mapping[str, int],
        found: Sequence[FoundLog],
        ids: Mapping[str, bytes],
        randomness: random.Random,
    ) -> ConvertedImage:
        places = {each.partition: ids[each.directory] for each in found if each.name == log_dir_name(*each.partition)}
        elsewhere = self._only_directory(ids) or UNASSIGNED_DIRECTORY
        passwords = BrokerPasswords(self._config)
        rules = MoveRules(
            levels=levels,
            broker_id=node_id,
            clear=lambda broker, stored: passwords.decoded(passwords.with_new_secret(stored)),
            may_delete_topics=self._config.settings(ControllerSettings).delete_topic_enable,
            known_id=functools.partial(known_topic_id, found),
            directory_of=lambda partition: places.get(partition, elsewhere),
        )
        return tree_image(self._tree, rules, randomness)

    def _adoption_rules(self, node_id: int, ids: Mapping[str, bytes]) -> AdoptionRules:
        configs = {name: topic.configs for name, topic in coordinator_topics(self._config, most_replicas=1).items()}
        only = self._only_directory(ids)
        return AdoptionRules(node_id, configs, TRANSACTIONS_TOPIC, lambda log: ids[log.folder.path], only)

    def _only_directory(self, ids: Mapping[str, bytes]) -> bytes | None:
        """The id of the only log directory, which has the logs without a folder: those that nobody has written to yet."""
        return ids[self._log_directories[0]] if len(self._log_directories) == 1 else None

    def _write_topic_ids(self, image: ClusterImage, found: Sequence[FoundLog], logs: Sequence[PartitionLog]) -> None:
        write_topic_ids(self._disk, found, image)
        for log in logs:
            topic = image.topics.get(log.topic)
            if topic is not None and log.topic_id == ZERO_UUID:
                log.topic_id = topic.topic_id  # its file has just been written

    def _set_metadata_log_aside(self, directory: str, randomness: random.Random) -> None:
        """Beside older metadata, a metadata log is that of the broker that had the log directory before."""
        folder = join(directory, METADATA_PARTITION_DIR)
        if self._disk.is_dir(folder) and any(name.endswith(LOG_SUFFIX) for name in self._disk.names(folder)):
            name = log_stray_dir_name(_METADATA_TOPIC, 0, randomness)
            logger.warning("%s is older than the cluster, and is set aside as %s", folder, name)
            self._disk.rename(folder, join(directory, name))
            self._disk.sync_dir(directory)

    def _finish_deletions(
        self, deleted: Mapping[str, bytes], found: Sequence[FoundLog], randomness: random.Random
    ) -> None:
        """The logs of these topics go as if the deletion had come to its end: a start removes what has such a name."""
        for each in found:
            topic, number = each.partition
            if topic in deleted and each.topic_id in (None, deleted[topic]):
                name = log_delete_dir_name(topic, number, randomness)
                self._disk.rename(join(each.directory, each.name), join(each.directory, name))
        for directory in {each.directory for each in found if each.partition.topic in deleted}:
            self._disk.sync_dir(directory)
