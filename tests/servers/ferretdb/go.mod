// The one module that tests need of Go: FerretDB, which speaks the protocol of MongoDB where there is no mongod.
module kvfair/tests/ferretdb

go 1.22

require github.com/FerretDB/FerretDB v1.24.0
