// Command cliffwatch-gateway gives Prometheus on other hosts the exporters of this host, which listen on loopback only:
// by HTTPS and with a password or a client certificate, as Prometheus' own web configuration file says.
//
//	https://HOST:9896/node, /block and /drive are the metrics of node_exporter, the block-layer probe and the drive exporter
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v2"
)

const (
	defaultAddress = ":9896"
	// Longer than any scrape's timeout here, so that Prometheus gives up first and says so.
	answerTimeout = 30 * time.Second
	headerTimeout = 10 * time.Second
	statusUsage   = 2
	// The client_auth_type that needs no password besides.
	verifiedClients = "RequireAndVerifyClientCert"
)

var exporterName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// exporters maps the name in a path to the address of an exporter on loopback.
type exporters map[string]string

func (known exporters) String() string {
	return ""
}

// Set adds one exporter, written NAME=HOST:PORT.
func (known exporters) Set(text string) error {
	name, address, _ := strings.Cut(text, "=")
	host, port, err := net.SplitHostPort(address)
	if !exporterName.MatchString(name) || err != nil || port == "" {
		return errors.New("write NAME=127.0.0.1:PORT")
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s is not on loopback; the gateway gives away the exporters of its own host only", host)
	}
	known[name] = address
	return nil
}

// protection is what has to be in the web configuration file; its format is that of the exporter toolkit:
// https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md
type protection struct {
	TLS *struct {
		ClientAuth string `yaml:"client_auth_type"`
	} `yaml:"tls_server_config"`
	Users map[string]string `yaml:"basic_auth_users"`
}

// checkProtection says what is missing of the web configuration file to let other hosts in.
func checkProtection(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var found protection
	if err := yaml.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if found.TLS == nil {
		return fmt.Errorf("%s: there is no tls_server_config; other hosts are let in by HTTPS only", path)
	}
	if len(found.Users) == 0 && found.TLS.ClientAuth != verifiedClients {
		return fmt.Errorf("%s: there are no basic_auth_users, and client_auth_type is not RequireAndVerifyClientCert", path)
	}
	return nil
}

// handler passes GET /NAME to that exporter's /metrics, as long as the configuration at path protects it.
func handler(known exporters, path string) http.Handler {
	mux := http.NewServeMux()
	for name, address := range known {
		mux.Handle("GET /"+name, proxy(name, address))
	}
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		// The file is read anew for each connection, and may have changed since the start.
		if err := checkProtection(path); err != nil {
			http.Error(answer, err.Error(), http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(answer, request)
	})
}

func proxy(name, address string) http.Handler {
	return &httputil.ReverseProxy{
		Transport: &http.Transport{ResponseHeaderTimeout: answerTimeout, DisableCompression: true},
		Rewrite: func(request *httputil.ProxyRequest) {
			// With the query: node_exporter can be asked for some of its collectors.
			query := request.In.URL.RawQuery
			request.Out.URL = &url.URL{Scheme: "http", Host: address, Path: "/metrics", RawQuery: query}
			request.Out.Host = address
			// The password is for the gateway.
			request.Out.Header.Del("Authorization")
		},
		ErrorHandler: func(answer http.ResponseWriter, _ *http.Request, err error) {
			http.Error(answer, fmt.Sprintf("the exporter %s does not answer: %v", name, err), http.StatusBadGateway)
		},
	}
}

func run(words []string) error {
	known := exporters{}
	given := flag.NewFlagSet("cliffwatch-gateway", flag.ContinueOnError)
	address := given.String("web.listen-address", defaultAddress, "address to listen on")
	path := given.String("web.config.file", "", "web configuration file of Prometheus, with TLS and a password; required")
	given.Var(known, "exporter", "exporter on loopback, as `NAME=HOST:PORT`: its metrics are at /NAME; may be repeated")
	if err := given.Parse(words); err != nil {
		return err
	}
	if given.NArg() > 0 {
		return fmt.Errorf("%q is no flag; an exporter is --exporter=NAME=HOST:PORT", given.Arg(0))
	}
	if *path == "" {
		return errors.New("--web.config.file is required: other hosts are let in by TLS and a password only")
	}
	if len(known) == 0 {
		return errors.New("there is no --exporter=NAME=HOST:PORT")
	}
	if err := checkProtection(*path); err != nil {
		return fmt.Errorf("--web.config.file: %w", err)
	}
	if err := web.Validate(*path); err != nil {
		return fmt.Errorf("--web.config.file: %s: %w", *path, err)
	}
	return serve(*address, *path, known)
}

func serve(address, path string, known exporters) error {
	server := &http.Server{Handler: handler(known, path), ReadHeaderTimeout: headerTimeout, WriteTimeout: 2 * answerTimeout}
	isByUnit := false
	addresses := []string{address}
	flags := &web.FlagConfig{WebListenAddresses: &addresses, WebSystemdSocket: &isByUnit, WebConfigFile: &path}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return web.ListenAndServe(server, flags, logger)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "cliffwatch-gateway:", err)
		}
		os.Exit(statusUsage)
	}
}
