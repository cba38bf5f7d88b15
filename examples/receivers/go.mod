module firelock.example/receivers

go 1.19

require firelock.example/clients/go v0.1.0

replace firelock.example/clients/go => ../../clients/go
