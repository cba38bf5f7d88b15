// Package api calls firelock. All of it but this file is generated from the OpenAPI document.
package api

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -generate types,client -package api -o client.gen.go ../../../openapi/openapi.json
