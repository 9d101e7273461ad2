package main

// franz-go: kgo for records, kadm for the rest, kmsg (requests as they are) where these two leave something out.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	franzTimeout   = 20 * time.Second
	franzUnchosen  = -1
	franzFlushTime = 150 * time.Second
)

type franz struct{ common []kgo.Opt }

func newFranz(bootstrap string, secured security) (library, error) {
	opts, err := secured.franz()
	return franz{append(opts,
		kgo.SeedBrokers(bootstrap),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
	)}, err
}

func (f franz) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts, f.common...)...)
}

// franzPartitioner takes the partition that a record has, and franz-go's default for one that has none.
type franzPartitioner struct{ manual, chosen kgo.TopicPartitioner }

func (p franzPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition != franzUnchosen || p.chosen.RequiresConsistency(r)
}

func (p franzPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition != franzUnchosen {
		return p.manual.Partition(r, n)
	}
	return p.chosen.Partition(r, n)
}

type franzPartitioners struct{}

func (franzPartitioners) ForTopic(topic string) kgo.TopicPartitioner {
	return franzPartitioner{
		manual: kgo.ManualPartitioner().ForTopic(topic),
		chosen: kgo.StickyKeyPartitioner(nil).ForTopic(topic),
	}
}

type franzProducer struct {
	client          *kgo.Client
	deliveryTimeout time.Duration
	sent            []*franzResult
}

type franzResult struct {
	record *kgo.Record
	err    error
}

func (f franz) producer(settings producerSettings) (producer, error) {
	acks := map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}[settings.Acks]
	codec := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}[settings.Compression]
	opts := []kgo.Opt{
		kgo.RequiredAcks(acks),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerLinger(milliseconds(settings.LingerMs)),
		kgo.ProducerBatchMaxBytes(int32(settings.MaxRequestSize)),
		kgo.ProduceRequestTimeout(milliseconds(settings.RequestTimeoutMs)),
		kgo.RecordPartitioner(franzPartitioners{}),
		kgo.AllowAutoTopicCreation(),
	}
	if settings.TransactionalID != nil {
		opts = append(opts, kgo.TransactionalID(*settings.TransactionalID),
			kgo.TransactionTimeout(milliseconds(settings.TransactionTimeoutMs)))
	} else if !settings.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	client, err := f.client(opts...)
	if err != nil {
		return nil, err
	}
	if settings.TransactionalID != nil {
		ctx, cancel := context.WithTimeout(context.Background(), franzTimeout)
		defer cancel()
		if _, _, err := client.ProducerID(ctx); err != nil {
			client.Close()
			return nil, err
		}
	}
	return &franzProducer{client: client, deliveryTimeout: milliseconds(settings.DeliveryTimeoutMs)}, nil
}

func (p *franzProducer) send(r record) error {
	out := &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Partition: franzUnchosen}
	if r.Partition != nil {
		out.Partition = *r.Partition
	}
	if r.TimestampMs != nil {
		out.Timestamp = time.UnixMilli(*r.TimestampMs)
	}
	for _, each := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: each.name, Value: each.value})
	}
	result := &franzResult{}
	p.sent = append(p.sent, result)
	// Not kgo.RecordDeliveryTimeout: that begins at the timestamp that the record carries.
	ctx, cancel := context.WithTimeout(context.Background(), p.deliveryTimeout)
	p.client.Produce(ctx, out, func(r *kgo.Record, err error) {
		result.record, result.err = r, err
		cancel()
	})
	return nil
}

func (p *franzProducer) flush() ([]delivery, error) {
	sent := p.sent
	p.sent = nil
	ctx, cancel := context.WithTimeout(context.Background(), franzFlushTime)
	defer cancel()
	if err := p.client.Flush(ctx); err != nil {
		return nil, err
	}
	var deliveries []delivery
	for _, result := range sent {
		if result.err != nil {
			return nil, result.err
		}
		where := partition{result.record.Topic, result.record.Partition}
		deliveries = append(deliveries, delivery{where, result.record.Offset})
	}
	return deliveries, nil
}

func (p *franzProducer) begin() error { return p.client.BeginTransaction() }

func (p *franzProducer) commit() error {
	if _, err := p.flush(); err != nil {
		return err
	}
	return p.client.EndTransaction(context.Background(), kgo.TryCommit)
}

func (p *franzProducer) abort() error {
	p.sent = nil
	if err := p.client.AbortBufferedRecords(context.Background()); err != nil {
		return err
	}
	return p.client.EndTransaction(context.Background(), kgo.TryAbort)
}

// sendOffsets makes the two requests by itself: kgo does that for a GroupTransactSession only, which is consumer and producer
// in one.
func (p *franzProducer) sendOffsets(offsets []offset, group consumer) error {
	ctx, cancel := context.WithTimeout(context.Background(), franzTimeout)
	defer cancel()
	id, epoch, err := p.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	from := group.(*franzConsumer)
	transactionalID := p.client.OptValue(kgo.TransactionalID).(string)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = transactionalID, id, epoch, *from.settings.GroupID
	added, err := add.RequestWith(ctx, p.client)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = transactionalID, id, epoch, *from.settings.GroupID
	commit.MemberID, commit.Generation = from.client.GroupMetadata()
	topics, err := kadm.NewClient(p.client).ListTopics(ctx)
	if err != nil {
		return err
	}
	for _, each := range offsets {
		topic := kmsg.NewTxnOffsetCommitRequestTopic()
		part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		topic.Topic, topic.TopicID, part.Partition, part.Offset = each.topic, topics[each.topic].ID, each.number, each.offset
		topic.Partitions = append(topic.Partitions, part)
		commit.Topics = append(commit.Topics, topic)
	}
	done, err := commit.RequestWith(ctx, p.client)
	if err != nil {
		return err
	}
	for _, topic := range done.Topics {
		for _, part := range topic.Partitions {
			if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *franzProducer) close() error {
	p.client.Close()
	return nil
}

// A franzConsumer has a kgo client as soon as it is known what to read: what kgo reads is an option of the client.
type franzConsumer struct {
	library  franz
	settings consumerSettings
	admin    *kadm.Client
	client   *kgo.Client
	at       positions

	owning sync.Mutex
	owned  map[partition]bool
	told   []rebalance
	failed error
}

func (f franz) consumer(settings consumerSettings) (consumer, error) {
	client, err := f.client(kgo.ClientID(settings.ClientID))
	if err != nil {
		return nil, err
	}
	return &franzConsumer{
		library: f, settings: settings, admin: kadm.NewClient(client), at: positions{}, owned: map[partition]bool{},
	}, nil
}

func (c *franzConsumer) options() []kgo.Opt {
	reset := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(),
		"latest":   kgo.NewOffset().AtEnd(),
		"none":     kgo.NoResetOffset(),
	}[c.settings.AutoOffsetReset]
	isolation := kgo.ReadUncommitted()
	if c.settings.ReadCommitted {
		isolation = kgo.ReadCommitted()
	}
	return []kgo.Opt{
		kgo.ClientID(c.settings.ClientID),
		kgo.MetadataMaxAge(time.Second),
		kgo.ConsumeResetOffset(reset),
		kgo.FetchMaxWait(milliseconds(c.settings.FetchMaxWaitMs)),
		kgo.FetchMinBytes(int32(c.settings.FetchMinBytes)),
		kgo.FetchMaxBytes(int32(c.settings.FetchMaxBytes)),
		kgo.FetchMaxPartitionBytes(int32(c.settings.MaxPartitionFetchBytes)),
		kgo.FetchIsolationLevel(isolation),
	}
}

func (c *franzConsumer) assign(starts []start) error {
	partitions := map[string]map[int32]kgo.Offset{}
	c.owned = map[partition]bool{}
	for _, each := range starts {
		if partitions[each.topic] == nil {
			partitions[each.topic] = map[int32]kgo.Offset{}
		}
		at := kgo.NewOffset().At(each.offset)
		switch each.offset {
		case beginning:
			at = kgo.NewOffset().AtStart()
		case end:
			at = kgo.NewOffset().AtEnd()
		default:
			c.at[each.partition] = each.offset
		}
		partitions[each.topic][each.number] = at
		c.owned[each.partition] = true
	}
	var err error
	c.client, err = c.library.client(append(c.options(), kgo.ConsumePartitions(partitions))...)
	return err
}

func (c *franzConsumer) subscribe(topics []string) error {
	return c.join(kgo.ConsumeTopics(topics...))
}

func (c *franzConsumer) subscribePattern(pattern string) error {
	return c.join(kgo.ConsumeTopics(pattern), kgo.ConsumeRegex())
}

// subscribeBrokerPattern is the same: kgo leaves patterns to the broker where that has the consumer protocol.
func (c *franzConsumer) subscribeBrokerPattern(pattern string) error {
	return c.subscribePattern(pattern)
}

func (c *franzConsumer) join(what ...kgo.Opt) error {
	own := func(change string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(ctx context.Context, client *kgo.Client, changed map[string][]int32) {
			if change == "revoked" && c.settings.AutoCommit {
				// As kgo does by itself for those who do not want to know of it.
				_ = client.CommitUncommittedOffsets(ctx)
			}
			c.own(change, changed)
		}
	}
	opts := append(c.options(),
		kgo.ConsumerGroup(*c.settings.GroupID),
		kgo.SessionTimeout(milliseconds(c.settings.SessionTimeoutMs)),
		kgo.HeartbeatInterval(milliseconds(c.settings.HeartbeatIntervalMs)),
		kgo.OnPartitionsAssigned(own("assigned")),
		kgo.OnPartitionsRevoked(own("revoked")),
		kgo.OnPartitionsLost(own("lost")),
	)
	if c.settings.GroupProtocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
		// Which of the broker's assignors goes by the balancer.
		if assignor := c.settings.RemoteAssignor; assignor != nil && *assignor == "range" {
			opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
		}
	}
	if c.settings.AutoCommit {
		opts = append(opts, kgo.AutoCommitInterval(milliseconds(c.settings.AutoCommitIntervalMs)))
	} else {
		opts = append(opts, kgo.DisableAutoCommit())
	}
	if c.settings.GroupInstanceID != nil {
		opts = append(opts, kgo.InstanceID(*c.settings.GroupInstanceID))
	}
	var err error
	c.client, err = c.library.client(append(opts, what...)...)
	return err
}

func (c *franzConsumer) own(change string, changed map[string][]int32) {
	c.owning.Lock()
	defer c.owning.Unlock()
	told := rebalance{change: change}
	for topic, numbers := range changed {
		for _, number := range numbers {
			told.partitions = append(told.partitions, partition{topic, number})
			if change == "assigned" {
				c.owned[partition{topic, number}] = true
			} else {
				delete(c.owned, partition{topic, number})
			}
		}
	}
	if len(told.partitions) > 0 {
		c.told = append(c.told, told)
	}
}

func (c *franzConsumer) rebalances() []rebalance {
	c.owning.Lock()
	defer c.owning.Unlock()
	return slices.Clone(c.told)
}

func (c *franzConsumer) poll(timeout time.Duration) ([]message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if failed := c.failed; failed != nil {
		c.failed = nil
		return nil, failed
	}
	fetches := c.client.PollFetches(ctx)
	for _, failed := range fetches.Errors() {
		// A member that cannot reach its group says so, and goes on trying.
		tries := errors.As(failed.Err, new(*kgo.ErrGroupSession)) && code(failed.Err) < 0
		if !errors.Is(failed.Err, context.DeadlineExceeded) && !tries {
			c.failed = failed.Err // told by the next poll, if there are records with it, which will not come again
		}
	}
	var messages []message
	fetches.EachRecord(func(r *kgo.Record) {
		next := message{
			partition: partition{r.Topic, r.Partition}, offset: r.Offset, timestampMs: r.Timestamp.UnixMilli(),
			timestampType: int(r.Attrs.TimestampType()), key: r.Key, value: r.Value,
		}
		for _, each := range r.Headers {
			next.headers = append(next.headers, header{each.Key, each.Value})
		}
		messages = append(messages, next)
	})
	c.at.advance(messages)
	if failed := c.failed; failed != nil && len(messages) == 0 {
		c.failed = nil
		return nil, failed
	}
	return messages, nil
}

func (c *franzConsumer) seek(where partition, offset int64) error {
	c.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{where.topic: {where.number: {Epoch: -1, Offset: offset}}})
	c.at[where] = offset
	return nil
}

func (c *franzConsumer) position(where partition) (int64, error) { return c.at.of(where) }

func (c *franzConsumer) assignment() []partition {
	c.owning.Lock()
	defer c.owning.Unlock()
	var owned []partition
	for each := range c.owned {
		owned = append(owned, each)
	}
	return owned
}

func (c *franzConsumer) commit(offsets []offset) error {
	if c.client == nil || c.client.OptValue(kgo.ConsumerGroup) == "" {
		return franzCommit(c.admin, *c.settings.GroupID, offsets)
	}
	wanted := map[string]map[int32]kgo.EpochOffset{}
	metadata := map[partition]string{}
	for _, each := range offsets {
		if wanted[each.topic] == nil {
			wanted[each.topic] = map[int32]kgo.EpochOffset{}
		}
		wanted[each.topic][each.number] = kgo.EpochOffset{Epoch: -1, Offset: each.offset}
		metadata[each.partition] = each.metadata
	}
	ctx := kgo.PreCommitFnContext(context.Background(), func(request *kmsg.OffsetCommitRequest) error {
		for i := range request.Topics {
			topic := &request.Topics[i]
			for j := range topic.Partitions {
				text := metadata[partition{topic.Topic, topic.Partitions[j].Partition}]
				topic.Partitions[j].Metadata = &text
			}
		}
		return nil
	})
	var failed error
	c.client.CommitOffsetsSync(ctx, wanted,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			failed = err
			for _, topic := range response.Topics {
				for _, part := range topic.Partitions {
					failed = errors.Join(failed, kerr.ErrorForCode(part.ErrorCode))
				}
			}
		})
	return failed
}

func (c *franzConsumer) committed(where partition) (*committed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), franzTimeout)
	defer cancel()
	found, err := c.admin.FetchOffsetsForTopics(ctx, *c.settings.GroupID, where.topic)
	if err != nil {
		return nil, err
	}
	at, known := found.Lookup(where.topic, where.number)
	if !known || at.Err != nil || at.At < 0 {
		return nil, at.Err
	}
	return &committed{at.At, at.Metadata}, nil
}

func (c *franzConsumer) watermarks(where partition) (int64, int64, error) {
	low, err := franzListOffset(c.admin, where, beginning)
	if err != nil {
		return 0, 0, err
	}
	high, err := franzListOffset(c.admin, where, end)
	return low, high, err
}

func (c *franzConsumer) offsetForTime(where partition, timestampMs int64) (*int64, error) {
	found, err := franzListOffset(c.admin, where, timestampMs)
	if err != nil || found < 0 {
		return nil, err
	}
	return &found, nil
}

func (c *franzConsumer) close() error {
	c.admin.Close()
	if c.client != nil {
		c.client.Close()
	}
	return nil
}
