"""Values of the control records that a Kafka quorum (KRaft) writes into its metadata log; logs of brokers do not have them."""

from ..schema import Message, Struct, field, int16, int32, int64, message, string, struct, uint16, uuid


@struct
class LeaderChangeVoter(Struct):
    """Kafka's name is ``Voter``, like the struct of VotersRecord."""

    voter_id: int32 = field()
    voter_directory_id: uuid = field("1+")


@message(versions="0-1", flexible="0+")
class LeaderChangeMessage(Message):
    version: int16 = field()
    leader_id: int32 = field()
    voters: list[LeaderChangeVoter] = field()
    granting_voters: list[LeaderChangeVoter] = field()


@message(versions="0", flexible="0+")
class SnapshotHeaderRecord(Message):
    version: int16 = field()
    last_contained_log_timestamp: int64 = field()


@message(versions="0", flexible="0+")
class SnapshotFooterRecord(Message):
    version: int16 = field()


@message(versions="0", flexible="0+")
class KRaftVersionRecord(Message):
    version: int16 = field()
    k_raft_version: int16 = field()


@struct
class Endpoint(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()


@struct
class KRaftVersionFeature(Struct):
    min_supported_version: int16 = field()
    max_supported_version: int16 = field()


@struct
class Voter(Struct):
    voter_id: int32 = field()
    voter_directory_id: uuid = field()
    endpoints: list[Endpoint] = field()
    k_raft_version_feature: KRaftVersionFeature = field()


@message(versions="0", flexible="0+")
class VotersRecord(Message):
    version: int16 = field()
    voters: list[Voter] = field()
