package main

import (
	"encoding/json"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
)

// required finds members that a schema requires and an object lacks. The validator does not: it fills in the defaults
// first, and the published schemas give required members defaults, too ("" or 0), which no API server accepts.
type required struct {
	client  openapi.Client
	schemas map[schema.GroupVersion]map[string]any // by name, of one group and version
}

func (r *required) load(gv schema.GroupVersion) (map[string]any, error) {
	if known, ok := r.schemas[gv]; ok {
		return known, nil
	}
	where := path.Join("apis", gv.Group, gv.Version)
	if gv.Group == "" {
		where = path.Join("api", gv.Version)
	}
	paths, err := r.client.Paths()
	if err != nil {
		return nil, err
	}
	source, ok := paths[where]
	if !ok {
		return nil, fmt.Errorf("no schemas of %s", gv)
	}
	text, err := source.Schema("application/json")
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	r.schemas[gv] = document.Components.Schemas
	return document.Components.Schemas, nil
}

func (r *required) check(gvk schema.GroupVersionKind, content map[string]any) []error {
	schemas, err := r.load(gvk.GroupVersion())
	if err != nil {
		return []error{err}
	}
	for _, candidate := range schemas {
		kinds, _ := member(candidate, "x-kubernetes-group-version-kind").([]any)
		for _, kind := range kinds {
			if member(kind, "kind") == gvk.Kind && member(kind, "group") == gvk.Group &&
				member(kind, "version") == gvk.Version {
				return missing(schemas, candidate, "", content)
			}
		}
	}
	return []error{fmt.Errorf("no schema of %s", gvk)}
}

func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

// missing walks an object together with its schema.
func missing(schemas map[string]any, of any, where string, value any) []error {
	var found []error
	if all, ok := member(of, "allOf").([]any); ok {
		for _, one := range all {
			found = append(found, missing(schemas, one, where, value)...)
		}
	}
	if reference, ok := member(of, "$ref").(string); ok {
		return missing(schemas, schemas[path.Base(reference)], where, value)
	}
	switch content := value.(type) {
	case map[string]any:
		names, _ := member(of, "required").([]any)
		for _, name := range names {
			if _, ok := content[name.(string)]; !ok {
				found = append(found, fmt.Errorf("%s.%s: required and missing", where, name))
			}
		}
		for name, inner := range content {
			known := member(member(of, "properties"), name)
			if known == nil {
				known = member(of, "additionalProperties")
			}
			found = append(found, missing(schemas, known, where+"."+name, inner)...)
		}
	case []any:
		for i, inner := range content {
			found = append(found, missing(schemas, member(of, "items"), fmt.Sprintf("%s[%d]", where, i), inner)...)
		}
	}
	return found
}
