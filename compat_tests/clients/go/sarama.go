package main

// sarama's AsyncProducer, and what its clients have in common.

import (
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const (
	saramaBackoff = 100 * time.Millisecond
	saramaTimeout = 20 * time.Second
)

type saramaLibrary struct {
	bootstrap string
	secured   security
}

func newSarama(bootstrap string, secured security) (library, error) {
	return saramaLibrary{bootstrap, secured}, secured.sarama(sarama.NewConfig())
}

func (s saramaLibrary) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.Retry.Backoff = saramaBackoff
	if err := s.secured.sarama(config); err != nil {
		panic(err) // it has been tried
	}
	return config
}

// saramaPartitioner takes the partition that a record has, and sarama's default for one that has none.
type saramaPartitioner struct{ manual, hash sarama.Partitioner }

func newSaramaPartitioner(topic string) sarama.Partitioner {
	return saramaPartitioner{sarama.NewManualPartitioner(topic), sarama.NewHashPartitioner(topic)}
}

func (p saramaPartitioner) Partition(m *sarama.ProducerMessage, count int32) (int32, error) {
	return p.of(m).Partition(m, count)
}

func (p saramaPartitioner) RequiresConsistency() bool { return true }

func (p saramaPartitioner) of(m *sarama.ProducerMessage) sarama.Partitioner {
	if m.Metadata.(*saramaResult).manual {
		return p.manual
	}
	return p.hash
}

// A saramaResult goes with a message as its metadata, and comes back with it.
type saramaResult struct {
	manual bool
	at     delivery
	err    error
}

type saramaProducer struct {
	sarama.AsyncProducer
	sent    []*saramaResult
	reports sync.WaitGroup
	ended   sync.WaitGroup
}

func (s saramaLibrary) producer(settings producerSettings) (producer, error) {
	config := s.config()
	config.Producer.RequiredAcks = sarama.RequiredAcks(settings.Acks)
	if err := config.Producer.Compression.UnmarshalText([]byte(settings.Compression)); err != nil {
		return nil, err
	}
	config.Producer.Flush.Frequency = milliseconds(settings.LingerMs)
	config.Producer.MaxMessageBytes = settings.MaxRequestSize
	config.Producer.Timeout = milliseconds(settings.RequestTimeoutMs)
	// The library counts attempts instead of time.
	config.Producer.Retry.Backoff = saramaBackoff
	config.Producer.Retry.Max = int(milliseconds(settings.DeliveryTimeoutMs) / saramaBackoff)
	config.Metadata.Retry.Max = config.Producer.Retry.Max
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = newSaramaPartitioner
	if settings.Idempotent || settings.TransactionalID != nil {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1 // the library insists
	}
	if settings.TransactionalID != nil {
		config.Producer.Transaction.ID = *settings.TransactionalID
		config.Producer.Transaction.Timeout = milliseconds(settings.TransactionTimeoutMs)
	}
	made, err := sarama.NewAsyncProducer([]string{s.bootstrap}, config)
	if err != nil {
		return nil, err
	}
	p := &saramaProducer{AsyncProducer: made}
	p.ended.Go(func() {
		for message := range made.Successes() {
			result := message.Metadata.(*saramaResult)
			result.at = delivery{partition{message.Topic, message.Partition}, message.Offset}
			p.reports.Done()
		}
	})
	p.ended.Go(func() {
		for failed := range made.Errors() {
			failed.Msg.Metadata.(*saramaResult).err = failed.Err
			p.reports.Done()
		}
	})
	return p, nil
}

// saramaEncoder leaves nil what is nil: an interface that holds a nil slice is an empty value to the library.
func saramaEncoder(content []byte) sarama.Encoder {
	if content == nil {
		return nil
	}
	return sarama.ByteEncoder(content)
}

func (p *saramaProducer) send(r record) error {
	result := &saramaResult{manual: r.Partition != nil}
	out := &sarama.ProducerMessage{
		Topic: r.Topic, Key: saramaEncoder(r.Key), Value: saramaEncoder(r.Value), Metadata: result,
	}
	if r.Partition != nil {
		out.Partition = *r.Partition
	}
	if r.TimestampMs != nil {
		out.Timestamp = time.UnixMilli(*r.TimestampMs)
	}
	for _, each := range r.Headers {
		out.Headers = append(out.Headers, sarama.RecordHeader{Key: []byte(each.name), Value: each.value})
	}
	p.sent = append(p.sent, result)
	p.reports.Add(1)
	p.Input() <- out
	return nil
}

func (p *saramaProducer) flush() ([]delivery, error) {
	sent := p.sent
	p.sent = nil
	p.reports.Wait()
	var deliveries []delivery
	for _, result := range sent {
		if result.err != nil {
			return nil, result.err
		}
		deliveries = append(deliveries, result.at)
	}
	return deliveries, nil
}

func (p *saramaProducer) begin() error { return p.BeginTxn() }

func (p *saramaProducer) commit() error {
	p.sent = nil
	return p.CommitTxn()
}

func (p *saramaProducer) abort() error {
	p.sent = nil
	return p.AbortTxn()
}

func (p *saramaProducer) sendOffsets(offsets []offset, group consumer) error {
	from := group.(*saramaConsumer)
	session := from.current()
	if session == nil {
		return errSaramaNoMember
	}
	wanted := map[string][]*sarama.PartitionOffsetMetadata{}
	for _, each := range offsets {
		at := &sarama.PartitionOffsetMetadata{Partition: each.number, Offset: each.offset, LeaderEpoch: -1}
		wanted[each.topic] = append(wanted[each.topic], at)
	}
	metadata := sarama.NewConsumerGroupMetadataFromSession(session, *from.settings.GroupID, from.settings.GroupInstanceID)
	return p.AddOffsetsToTxnWithGroupMetadata(wanted, metadata)
}

func (p *saramaProducer) close() error {
	p.AsyncClose()
	p.ended.Wait()
	return nil
}
