package merge

import (
	"encoding/json"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/record"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

type recordingConverter struct {
	Converter
	conversions []record.Fact
}

func typedFact(tv *typed.TypedValue) record.Fact {
	return record.Fact{
		"schema": record.Schema(tv.Schema()), "type": record.Type(tv.TypeRef()), "value": record.Value(tv.AsValue()),
	}
}

func (c *recordingConverter) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	result, err := c.Converter.Convert(object, version)
	fact := record.Fact{"from": typedFact(object), "apiVersion": string(version), "error": record.Error(err)}
	if err == nil {
		fact["to"] = typedFact(result)
	} else {
		fact["missing"] = c.Converter.IsMissingVersionError(err)
	}
	c.conversions = append(c.conversions, fact)
	return result, err
}

func (s *Updater) filters() record.Fact {
	result := record.Fact{}
	for version, set := range s.IgnoredFields {
		result[string(version)] = record.Fact{"kind": "exclude", "exclude": record.Fields(set)}
	}
	for version, filter := range s.IgnoreFilter {
		kind, exclude := fieldpath.RecordedFilter(filter)
		result[string(version)] = record.Fact{"kind": kind, "exclude": record.Fields(exclude)}
	}
	return result
}

func (s *Updater) recorded(fact record.Fact, work func(*Updater) (*typed.TypedValue, fieldpath.ManagedFields, error)) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	converter := &recordingConverter{Converter: s.Converter}
	copied := *s
	copied.Converter = converter
	fact["filters"] = s.filters()
	object, managers, err := work(&copied)
	fact["conversions"] = converter.conversions
	switch t := err.(type) {
	case nil:
		fact["managersAfter"] = record.Managers(managers)
		fact["result"] = json.RawMessage("null")
		if object != nil {
			fact["result"] = record.Value(object.AsValue())
		}
		fact["unchanged"] = object == nil
	case Conflicts:
		conflicts := [][2]string{}
		for _, conflict := range t {
			conflicts = append(conflicts, [2]string{conflict.Manager, conflict.Path.String()})
		}
		fact["conflicts"] = conflicts
	default:
		fact["error"] = err.Error()
	}
	record.Write(fact)
	return object, managers, err
}

// Update is recorded.
func (s *Updater) Update(liveObject, newObject *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	fact := record.Fact{
		"op": "update", "live": typedFact(liveObject), "next": typedFact(newObject), "apiVersion": string(version),
		"managers": record.Managers(managers), "manager": manager,
	}
	return s.recorded(fact, func(u *Updater) (*typed.TypedValue, fieldpath.ManagedFields, error) {
		return u.updateUnrecorded(liveObject, newObject, version, managers, manager)
	})
}

// Apply is recorded.
func (s *Updater) Apply(liveObject, configObject *typed.TypedValue, version fieldpath.APIVersion, managers fieldpath.ManagedFields, manager string, force bool) (*typed.TypedValue, fieldpath.ManagedFields, error) {
	fact := record.Fact{
		"op": "apply", "live": typedFact(liveObject), "next": typedFact(configObject), "apiVersion": string(version),
		"managers": record.Managers(managers), "manager": manager, "force": force, "inputOnNoop": s.returnInputOnNoop,
	}
	return s.recorded(fact, func(u *Updater) (*typed.TypedValue, fieldpath.ManagedFields, error) {
		return u.applyUnrecorded(liveObject, configObject, version, managers, manager, force)
	})
}
