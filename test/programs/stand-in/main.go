// Plays any application in a container, under any name and with any arguments. The first process of a container serves: on
// each port in STAND_IN_PORTS ("8080 53/udp") it answers HTTP, HTTPS, and the health check of gRPC. With STAND_IN_ROLE=once,
// and for every other process of the container (probes, hooks, kubectl exec), it succeeds at once. `stand-in get URL` prints
// what the URL answers.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "get" {
		get(os.Args[2])
		return
	}
	if os.Getenv("STAND_IN_ROLE") == "once" || !isFirst() {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	for _, port := range strings.Fields(os.Getenv("STAND_IN_PORTS")) {
		if udp, isUDP := strings.CutSuffix(port, "/udp"); isUDP {
			echo(udp)
		} else {
			serve(port)
		}
	}
	log.Printf("%q serves on %q", os.Args, os.Getenv("STAND_IN_PORTS"))
	<-ended
}

// held marks that this process serves; the garbage collector would close it without a reference.
var held net.Listener

// isFirst tells whether no other process of this container serves. Containers may share their process, network and host
// name spaces, but each has a root of its own, which its line in mountinfo names. The socket is held until the process ends.
func isFirst() bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(err)
	root, _, _ := strings.Cut(string(mounts), "\n")
	_, options, _ := strings.Cut(root, " - ")
	held, err = net.Listen("unix", fmt.Sprintf("@stand-in-%x", sha256.Sum256([]byte(options))))
	if errors.Is(err, syscall.EADDRINUSE) {
		return false
	}
	must(err)
	return true
}

func echo(port string) {
	conn, err := net.ListenPacket("udp", ":"+port)
	must(err)
	go func() {
		buffer := make([]byte, 65536)
		for {
			n, from, err := conn.ReadFrom(buffer)
			must(err)
			conn.WriteTo(buffer[:n], from)
		}
	}()
}

func serve(port string) {
	listener, err := net.Listen("tcp", ":"+port)
	must(err)
	mixed := &mixedListener{Listener: listener, accepted: make(chan net.Conn), tls: serverTLS()}
	go mixed.acceptAll()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: http.HandlerFunc(answer), Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { must(server.Serve(mixed)) }()
}

func answer(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") == "application/grpc" {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.Write([]byte{0, 0, 0, 0, 2, 8, 1}) // grpc.health.v1.HealthCheckResponse{status: SERVING}
		w.Header().Set("Grpc-Status", "0")
		return
	}
	host, err := os.Hostname()
	must(err)
	fmt.Fprintf(w, "stand-in in %s\n", host)
}

// A mixedListener accepts both plain and TLS connections on one port: the first byte of a client tells which it is.
type mixedListener struct {
	net.Listener
	accepted chan net.Conn
	tls      *tls.Config
}

func (l *mixedListener) acceptAll() {
	for {
		conn, err := l.Listener.Accept()
		must(err)
		go func() {
			reader := bufio.NewReader(conn)
			first, err := reader.Peek(1)
			if err != nil {
				conn.Close()
				return
			}
			var known net.Conn = &peekedConn{conn, reader}
			if first[0] == 0x16 { // a handshake record
				known = tls.Server(known, l.tls)
			}
			l.accepted <- known
		}()
	}
}

func (l *mixedListener) Accept() (net.Conn, error) { return <-l.accepted, nil }

type peekedConn struct {
	net.Conn
	reader io.Reader
}

func (c *peekedConn) Read(into []byte) (int, error) { return c.reader.Read(into) }

func serverTLS() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"stand-in"},
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(err)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		NextProtos:   []string{"http/1.1"},
	}
}

func get(url string) {
	client := http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	answer, err := client.Get(url)
	must(err)
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	must(err)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
