// Package record writes down what structured-merge-diff was asked and what it answered, one JSON document per line. It is
// compiled into a copy of the module: its own tests and our random ones become facts that our implementation must repeat.
package record

import (
	"encoding/json"
	"os"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

var (
	lock    sync.Mutex
	output  *os.File
	schemas = map[*schema.Schema]int{}
)

// Fact is one question with its answer.
type Fact map[string]any

// Write adds a fact to the file that KCP_FACTS names; without one nothing is written.
func Write(fact Fact) {
	lock.Lock()
	defer lock.Unlock()
	write(fact)
}

func write(fact Fact) {
	name := os.Getenv("KCP_FACTS")
	if name == "" {
		return
	}
	if output == nil {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			panic(err)
		}
		output = file
	}
	line, err := json.Marshal(fact)
	if err != nil {
		panic(err)
	}
	if _, err := output.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// Schema is the number of a schema; it is written before its first use. Numbers count within one process.
func Schema(s *schema.Schema) Fact {
	lock.Lock()
	defer lock.Unlock()
	id, known := schemas[s]
	if !known {
		id = len(schemas)
		schemas[s] = id
		write(Fact{"op": "schema", "process": os.Getpid(), "id": id, "types": types(s)})
	}
	return Fact{"process": os.Getpid(), "id": id}
}

func types(s *schema.Schema) map[string]any {
	result := map[string]any{}
	for i := range s.Types {
		result[s.Types[i].Name] = atom(&s.Types[i].Atom)
	}
	return result
}

func atom(a *schema.Atom) Fact {
	result := Fact{}
	if a.Scalar != nil {
		result["scalar"] = string(*a.Scalar)
	}
	if a.List != nil {
		result["list"] = Fact{
			"relationship": string(a.List.ElementRelationship),
			"keys":         append([]string{}, a.List.Keys...),
			"items":        Type(a.List.ElementType),
		}
	}
	if a.Map != nil {
		fields := Fact{}
		for _, field := range a.Map.Fields {
			fields[field.Name] = Fact{"type": Type(field.Type), "default": field.Default}
		}
		result["map"] = Fact{
			"relationship": string(a.Map.ElementRelationship),
			"fields":       fields,
			"values":       Type(a.Map.ElementType),
		}
	}
	return result
}

// Type is a reference to a type: by name, or the type itself.
func Type(t schema.TypeRef) Fact {
	result := Fact{}
	if t.NamedType != nil {
		result["name"] = *t.NamedType
	} else {
		result["inlined"] = atom(&t.Inlined)
	}
	if t.ElementRelationship != nil {
		result["relationship"] = string(*t.ElementRelationship)
	}
	return result
}

// Value is a value as JSON.
func Value(v value.Value) json.RawMessage {
	if v == nil {
		return json.RawMessage("null")
	}
	text, err := value.ToJSON(v)
	if err != nil {
		panic(err)
	}
	return text
}

// Fields is a set as FieldsV1.
func Fields(set *fieldpath.Set) json.RawMessage {
	if set == nil {
		return json.RawMessage("null")
	}
	text, err := set.ToJSON()
	if err != nil {
		// An item lost the fields by which it is told apart: there is no step to it, and nobody can write the set.
		return json.RawMessage(`"invalid"`)
	}
	return text
}

// Managers are managed fields by manager.
func Managers(managers fieldpath.ManagedFields) Fact {
	result := Fact{}
	for name, owned := range managers {
		result[name] = Fact{
			"fields":     Fields(owned.Set()),
			"apiVersion": string(owned.APIVersion()),
			"applied":    owned.Applied(),
		}
	}
	return result
}

// Error is the text of an error, or nil.
func Error(err error) any {
	if err == nil {
		return nil
	}
	return err.Error()
}
