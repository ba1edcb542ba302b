// A web server whose requests take CPU time: see main.go. It uses Go's own library alone.
module kcp.dev/test/programs/web-load

go 1.25.0
