package typed

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/record"
)

func (tv TypedValue) fact(op string) record.Fact {
	return record.Fact{
		"op": op, "schema": record.Schema(tv.schema), "type": record.Type(tv.typeRef), "value": record.Value(tv.value),
	}
}

// Validate is recorded.
func (tv TypedValue) Validate(opts ...ValidationOptions) error {
	err := tv.validateUnrecorded(opts...)
	fact := tv.fact("validate")
	fact["allowDuplicates"] = len(opts) > 0
	fact["error"] = record.Error(err)
	record.Write(fact)
	return err
}

// ToFieldSet is recorded.
func (tv TypedValue) ToFieldSet() (*fieldpath.Set, error) {
	set, err := tv.toFieldSetUnrecorded()
	fact := tv.fact("fields")
	fact["result"] = record.Fields(set)
	fact["error"] = record.Error(err)
	record.Write(fact)
	return set, err
}

// Merge is recorded.
func (tv TypedValue) Merge(pso *TypedValue) (*TypedValue, error) {
	result, err := tv.mergeUnrecorded(pso)
	fact := tv.fact("merge")
	fact["other"] = record.Value(pso.value)
	if err == nil {
		fact["result"] = record.Value(result.value)
	}
	fact["error"] = record.Error(err)
	record.Write(fact)
	return result, err
}

// Compare is recorded.
func (tv TypedValue) Compare(rhs *TypedValue) (*Comparison, error) {
	result, err := tv.compareUnrecorded(rhs)
	fact := tv.fact("compare")
	fact["other"] = record.Value(rhs.value)
	if err == nil {
		fact["removed"] = record.Fields(result.Removed)
		fact["modified"] = record.Fields(result.Modified)
		fact["added"] = record.Fields(result.Added)
	}
	fact["error"] = record.Error(err)
	record.Write(fact)
	return result, err
}

// RemoveItems is recorded.
func (tv TypedValue) RemoveItems(items *fieldpath.Set) *TypedValue {
	result := tv.removeItemsUnrecorded(items)
	fact := tv.fact("remove")
	fact["fields"] = record.Fields(items)
	fact["result"] = record.Value(result.value)
	record.Write(fact)
	return result
}

// ReconcileFieldSetWithSchema is recorded.
func ReconcileFieldSetWithSchema(fieldset *fieldpath.Set, tv *TypedValue) (*fieldpath.Set, error) {
	result, err := reconcileUnrecorded(fieldset, tv)
	fact := tv.fact("fit")
	fact["fields"] = record.Fields(fieldset)
	fact["result"] = record.Fields(result)
	fact["error"] = record.Error(err)
	record.Write(fact)
	return result, err
}
