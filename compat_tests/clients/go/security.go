package main

// How clients get in: what the call "secure" says, and the same for each library.

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/IBM/sarama"
	kafkasasl "github.com/segmentio/kafka-go/sasl"
	kafkaplain "github.com/segmentio/kafka-go/sasl/plain"
	kafkascram "github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kgo"
	franzsasl "github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	xdgscram "github.com/xdg-go/scram"
)

// security has PEM in CA and Certificate, which holds a key and its chain; Mechanism is empty without SASL.
type security struct {
	Protocol    string `json:"protocol"`
	Mechanism   string `json:"mechanism"`
	Username    string `json:"username"`
	Password    string `json:"password"`
	Token       string `json:"token"`
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
}

// tls is nil where connections are not encrypted.
func (s security) tls() (*tls.Config, error) {
	if !strings.HasSuffix(s.Protocol, "SSL") {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(s.CA)) {
			return nil, fmt.Errorf("no certificate in %q", s.CA)
		}
	}
	if s.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(s.Certificate), []byte(s.Certificate))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// franz gives the options of a kgo client.
func (s security) franz() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	config, err := s.tls()
	if err != nil {
		return nil, err
	}
	if config != nil {
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	var mechanism franzsasl.Mechanism
	switch s.Mechanism {
	case "":
		return opts, nil
	case "PLAIN":
		mechanism = plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		mechanism = scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		mechanism = scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		mechanism = oauth.Auth{Token: s.Token}.AsMechanism()
	default:
		return nil, fmt.Errorf("no mechanism %s", s.Mechanism)
	}
	return append(opts, kgo.SASL(mechanism)), nil
}

// sarama sets it in a configuration.
func (s security) sarama(config *sarama.Config) error {
	encrypted, err := s.tls()
	if err != nil {
		return err
	}
	config.Net.TLS.Enable, config.Net.TLS.Config = encrypted != nil, encrypted
	if s.Mechanism == "" {
		return nil
	}
	sasl := &config.Net.SASL
	sasl.Enable, sasl.Mechanism = true, sarama.SASLMechanism(s.Mechanism)
	sasl.User, sasl.Password = s.Username, s.Password
	switch s.Mechanism {
	case "SCRAM-SHA-256":
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &saramaScram{hash: sha256.New} }
	case "SCRAM-SHA-512":
		sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &saramaScram{hash: sha512.New} }
	case "OAUTHBEARER":
		sasl.TokenProvider = saramaToken(s.Token)
	}
	return nil
}

type saramaToken string

func (t saramaToken) Token() (*sarama.AccessToken, error) { return &sarama.AccessToken{Token: string(t)}, nil }

// saramaScram is what the library leaves to its users: a conversation of SCRAM.
type saramaScram struct {
	hash xdgscram.HashGeneratorFcn
	talk *xdgscram.ClientConversation
}

func (s *saramaScram) Begin(user, password, authzID string) error {
	client, err := s.hash.NewClient(user, password, authzID)
	if err == nil {
		s.talk = client.NewConversation()
	}
	return err
}

func (s *saramaScram) Step(challenge string) (string, error) { return s.talk.Step(challenge) }

func (s *saramaScram) Done() bool { return s.talk.Done() }

// kafkaGo is nil without SASL.
func (s security) kafkaGo() (kafkasasl.Mechanism, error) {
	switch s.Mechanism {
	case "":
		return nil, nil
	case "PLAIN":
		return kafkaplain.Mechanism{Username: s.Username, Password: s.Password}, nil
	case "SCRAM-SHA-256":
		return kafkascram.Mechanism(kafkascram.SHA256, s.Username, s.Password)
	case "SCRAM-SHA-512":
		return kafkascram.Mechanism(kafkascram.SHA512, s.Username, s.Password)
	case "OAUTHBEARER":
		return kafkaGoBearer(s.Token), nil
	default:
		return nil, fmt.Errorf("no mechanism %s", s.Mechanism)
	}
}

// kafkaGoBearer is what the library leaves to its users: OAUTHBEARER (RFC 7628).
type kafkaGoBearer string

func (t kafkaGoBearer) Name() string { return "OAUTHBEARER" }

func (t kafkaGoBearer) Start(context.Context) (kafkasasl.StateMachine, []byte, error) {
	return t, []byte("n,,\x01auth=Bearer " + string(t) + "\x01\x01"), nil
}

func (t kafkaGoBearer) Next(_ context.Context, challenge []byte) (bool, []byte, error) {
	if len(challenge) > 0 {
		return false, []byte{1}, nil // the server has said what is wrong, and fails after this
	}
	return true, nil, nil
}
