module firelock.example/clients/go

go 1.19
