package main

// kafka-go's Writer, and what its clients have in common.

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

const (
	kafkaGoAttempts = 3
	kafkaGoBackoff  = 100 * time.Millisecond
	kafkaGoTimeout  = 20 * time.Second
	// The most between two looks at the metadata, and the most that one may take.
	kafkaGoMetadata = 2 * time.Second
	// A Reader's MaxWait is the limit of its connection, too: an answer that is later is lost with the connection, which a
	// hundred Readers begin anew at once, so that answers are later still. Of two seconds the broker is told half.
	kafkaGoPatience = 2 * time.Second
)

type kafkaGoLibrary struct {
	bootstrap string
	encrypted *tls.Config
	mechanism sasl.Mechanism
}

func newKafkaGo(bootstrap string, secured security) (library, error) {
	mechanism, err := secured.kafkaGo()
	if err != nil {
		return nil, err
	}
	encrypted, err := secured.tls()
	return kafkaGoLibrary{bootstrap, encrypted, mechanism}, err
}

func (k kafkaGoLibrary) transport(clientID string) *kafka.Transport {
	return &kafka.Transport{ClientID: clientID, MetadataTTL: kafkaGoMetadata, TLS: k.encrypted, SASL: k.mechanism}
}

func (k kafkaGoLibrary) address() net.Addr { return kafka.TCP(k.bootstrap) }

func (k kafkaGoLibrary) client(clientID string) *kafka.Client {
	return &kafka.Client{
		Addr: k.address(), Timeout: kafkaGoTimeout,
		Transport: k.transport(clientID),
	}
}

// A kafkaGoResult goes with a message as its WriterData, and comes back with it.
type kafkaGoResult struct {
	partition *int32
	at        delivery
}

// kafkaGoBalancer takes the partition that a record has, and the Writer's choice by key for one that has none.
func kafkaGoBalancer() kafka.BalancerFunc {
	hash := &kafka.Hash{}
	return func(m kafka.Message, partitions ...int) int {
		if chosen := m.WriterData.(*kafkaGoResult).partition; chosen != nil {
			return int(*chosen)
		}
		return hash.Balance(m, partitions...)
	}
}

type kafkaGoProducer struct {
	writer          *kafka.Writer
	deliveryTimeout time.Duration
	queued          []kafka.Message
}

func (k kafkaGoLibrary) producer(settings producerSettings) (producer, error) {
	if settings.Idempotent || settings.TransactionalID != nil {
		panic("kafka-go's Writer is neither idempotent nor transactional")
	}
	var codec kafka.Compression
	if settings.Compression != "none" {
		if err := codec.UnmarshalText([]byte(settings.Compression)); err != nil {
			return nil, err
		}
	}
	deliveryTimeout := milliseconds(settings.DeliveryTimeoutMs)
	return &kafkaGoProducer{deliveryTimeout: deliveryTimeout, writer: &kafka.Writer{
		Addr:         k.address(),
		Balancer:     kafkaGoBalancer(),
		RequiredAcks: kafka.RequiredAcks(settings.Acks),
		Compression:  codec,
		// Zero stands for a second.
		BatchTimeout:           max(milliseconds(settings.LingerMs), time.Millisecond),
		BatchBytes:             int64(settings.MaxRequestSize),
		WriteTimeout:           milliseconds(settings.RequestTimeoutMs),
		MaxAttempts:            int(deliveryTimeout / kafkaGoBackoff),
		WriteBackoffMax:        kafkaGoBackoff,
		AllowAutoTopicCreation: true,
		Transport:              k.transport(""),
		Completion: func(messages []kafka.Message, _ error) {
			for _, m := range messages {
				at := delivery{partition{m.Topic, int32(m.Partition)}, m.Offset}
				m.WriterData.(*kafkaGoResult).at = at
			}
		},
	}}, nil
}

func (p *kafkaGoProducer) send(r record) error {
	out := kafka.Message{Topic: r.Topic, Key: r.Key, Value: r.Value, WriterData: &kafkaGoResult{partition: r.Partition}}
	if r.TimestampMs != nil {
		out.Time = time.UnixMilli(*r.TimestampMs)
	}
	for _, each := range r.Headers {
		out.Headers = append(out.Headers, kafka.Header{Key: each.name, Value: each.value})
	}
	p.queued = append(p.queued, out)
	return nil
}

func (p *kafkaGoProducer) flush() ([]delivery, error) {
	queued := p.queued
	p.queued = nil
	ctx, cancel := context.WithTimeout(context.Background(), p.deliveryTimeout)
	defer cancel()
	err := p.writer.WriteMessages(ctx, queued...)
	// While a topic is being created nothing is written, and its users are told to try again.
	for attempt := 1; attempt < kafkaGoAttempts && kafkaGoNoTopicYet(err); attempt++ {
		time.Sleep(kafkaGoBackoff)
		err = p.writer.WriteMessages(ctx, queued...)
	}
	if err != nil {
		if each := kafka.WriteErrors(nil); errors.As(err, &each) {
			return nil, errors.Join(each...)
		}
		return nil, err
	}
	var deliveries []delivery
	for _, m := range queued {
		deliveries = append(deliveries, m.WriterData.(*kafkaGoResult).at)
	}
	return deliveries, nil
}

func kafkaGoNoTopicYet(err error) bool {
	return errors.Is(err, kafka.LeaderNotAvailable) || errors.Is(err, kafka.UnknownTopicOrPartition)
}

func (p *kafkaGoProducer) begin() error                         { panic("kafka-go's Writer has no transactions") }
func (p *kafkaGoProducer) commit() error                        { return p.begin() }
func (p *kafkaGoProducer) abort() error                         { return p.begin() }
func (p *kafkaGoProducer) sendOffsets([]offset, consumer) error { return p.begin() }
func (p *kafkaGoProducer) close() error                         { return p.writer.Close() }
