// The program that plays every application in test/long/applications: see main.go. It uses Go's own library alone.
module kcp.dev/test/programs/stand-in

go 1.25.0
