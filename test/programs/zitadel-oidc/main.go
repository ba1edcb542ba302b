// An OpenID provider over TLS: the example server of zitadel/oidc, with users and groups from a file that is read at each
// sign-in, one public client, and the device flow.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

type user struct {
	Password string   `json:"password"`
	Groups   []string `json:"groups"`
}

// users has the names of the file as ids and as names.
type users struct{ file string }

func (u users) read() map[string]user {
	data, err := os.ReadFile(u.file)
	if err != nil {
		log.Fatal(err)
	}
	found := map[string]user{}
	if err := json.Unmarshal(data, &found); err != nil {
		log.Fatal(err)
	}
	return found
}

func (u users) GetUserByID(id string) *storage.User {
	found, ok := u.read()[id]
	if !ok {
		return nil
	}
	return &storage.User{ID: id, Username: id, Password: found.Password}
}

func (u users) GetUserByUsername(name string) *storage.User { return u.GetUserByID(name) }

func (users) ExampleClientID() string { return storage.ServiceUserID }

type client struct {
	*storage.Client
	lifetime time.Duration
}

func (client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
}

func (c client) IDTokenLifetime() time.Duration { return c.lifetime }

type provider struct {
	*storage.Storage
	users    users
	lifetime time.Duration
}

func (p provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	found, err := p.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{found.(*storage.Client), p.lifetime}, nil
}

// SetUserinfoFromRequest puts the groups into the ID token.
func (p provider) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	if err := p.Storage.SetUserinfoFromRequest(ctx, info, request, scopes); err != nil {
		return err
	}
	info.AppendClaims("groups", p.users.read()[request.GetSubject()].Groups)
	return nil
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address and port")
	cert := flag.String("cert", "", "file with the certificate")
	key := flag.String("key", "", "file with its key")
	file := flag.String("users", "", `JSON file: {"NAME": {"password": "...", "groups": ["..."]}}`)
	id := flag.String("client-id", "kcp", "the public client")
	lifetime := flag.Duration("id-token-lifetime", time.Hour, "how long ID tokens are valid")
	flag.Parse()

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	issuer := "https://" + listener.Addr().String()
	storage.RegisterClients(storage.NativeClient(*id, "http://localhost"))
	known := users{*file}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	handler := exampleop.SetupServer(issuer, provider{storage.NewStorage(known), known, *lifetime}, logger, false)
	// The test waits for it.
	fmt.Fprintln(os.Stderr, "serving "+issuer)
	log.Fatal(http.ServeTLS(listener, handler, *cert, *key))
}
