package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// schemas checks objects against the OpenAPI documents in a folder. It knows the words of OpenAPI that the documents of
// Kubernetes use.
type schemas struct {
	folder    string
	documents map[string]map[string]any // the schemas by name, of one apiVersion
}

func (s *schemas) load(version string) (map[string]any, error) {
	if known, ok := s.documents[version]; ok {
		return known, nil
	}
	parent := "apis"
	if !strings.Contains(version, "/") {
		parent = "api"
	}
	text, err := os.ReadFile(filepath.Join(s.folder, parent, version+".json"))
	if err != nil {
		return nil, fmt.Errorf("no schemas of %s: %w", version, err)
	}
	var document struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	s.documents[version] = document.Components.Schemas
	return document.Components.Schemas, nil
}

// check returns what is wrong with an object.
func (s *schemas) check(version, kind string, content map[string]any) []error {
	all, err := s.load(version)
	if err != nil {
		return []error{err}
	}
	// In the form of JSON, and with whole numbers as they were written.
	text, err := json.Marshal(content)
	if err != nil {
		return []error{err}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return []error{err}
	}
	group, name := path.Split(version)
	for _, candidate := range all {
		kinds, _ := member(candidate, "x-kubernetes-group-version-kind").([]any)
		for _, one := range kinds {
			if member(one, "kind") == kind && member(one, "group") == strings.TrimSuffix(group, "/") &&
				member(one, "version") == name {
				return walk(all, candidate, "", value)
			}
		}
	}
	return []error{fmt.Errorf("no schema of %s %s", version, kind)}
}

func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

func wrong(where, format string, values ...any) []error {
	return []error{fmt.Errorf("%s: %s", strings.TrimPrefix(where, "."), fmt.Sprintf(format, values...))}
}

// walk goes through a value together with its schema.
func walk(all map[string]any, of any, where string, value any) []error {
	var found []error
	if parts, ok := member(of, "allOf").([]any); ok {
		for _, part := range parts {
			found = append(found, walk(all, part, where, value)...)
		}
	}
	if reference, ok := member(of, "$ref").(string); ok {
		target, ok := all[path.Base(reference)]
		if !ok {
			return wrong(where, "its schema refers to %s, which is not there", reference)
		}
		switch path.Base(reference) {
		case "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta":
			found = append(found, checkNames(where, value)...)
			found = append(found, checkLabels(where+".labels", member(value, "labels"))...)
		case "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector":
			found = append(found, checkLabels(where+".matchLabels", member(value, "matchLabels"))...)
		}
		return append(found, walk(all, target, where, value)...)
	}
	if kinds, ok := member(of, "oneOf").([]any); ok {
		var names []string
		for _, kind := range kinds {
			if isType(member(kind, "type"), value) {
				return found
			}
			names = append(names, fmt.Sprint(member(kind, "type")))
		}
		return append(found, wrong(where, "must be %s", strings.Join(names, " or "))...)
	}
	kind := member(of, "type")
	if kind != nil && !isType(kind, value) {
		return append(found, wrong(where, "must be %s, not %v", kind, value)...)
	}
	found = append(found, checkFormat(member(of, "format"), where, value)...)
	switch content := value.(type) {
	case map[string]any:
		found = append(found, walkObject(all, of, where, content)...)
	case []any:
		for i, inner := range content {
			found = append(found, walk(all, member(of, "items"), fmt.Sprintf("%s[%d]", where, i), inner)...)
		}
		found = append(found, repeated(of, where, content)...)
	}
	return found
}

func walkObject(all map[string]any, of any, where string, content map[string]any) []error {
	var found []error
	needed, _ := member(of, "required").([]any)
	for _, name := range needed {
		if _, ok := content[name.(string)]; !ok {
			found = append(found, wrong(where+"."+name.(string), "required and missing")...)
		}
	}
	properties, more := member(of, "properties"), member(of, "additionalProperties")
	if properties == nil && more == nil {
		return found // free, or described by another part of an allOf
	}
	names := make([]string, 0, len(content))
	for name := range content {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		known := member(properties, name)
		if known == nil {
			known = more
		}
		if known == nil {
			found = append(found, wrong(where+"."+name, "unknown field")...)
			continue
		}
		found = append(found, walk(all, known, where+"."+name, content[name])...)
	}
	return found
}

func isType(kind, value any) bool {
	switch kind {
	case "object":
		_, ok := value.(map[string]any)
		return ok
	case "array":
		_, ok := value.([]any)
		return ok
	case "string":
		_, ok := value.(string)
		return ok
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "number":
		_, ok := value.(json.Number)
		return ok
	case "integer":
		number, ok := value.(json.Number)
		if !ok {
			return false
		}
		_, err := number.Int64()
		return err == nil
	}
	return false
}

func checkFormat(format any, where string, value any) []error {
	switch format {
	case "int32":
		if number, ok := value.(json.Number); ok {
			if whole, err := number.Int64(); err == nil && (whole < math.MinInt32 || whole > math.MaxInt32) {
				return wrong(where, "does not fit into 32 bits: %v", value)
			}
		}
	case "date-time":
		if text, ok := value.(string); ok {
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				return wrong(where, "%v", err)
			}
		}
	}
	return nil
}

// checkNames and checkLabels find what no API server accepts and no schema says.
func checkNames(where string, value any) []error {
	var found []error
	if name, ok := member(value, "name").(string); ok {
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			found = append(found, wrong(where+".name", "%s", problem)...)
		}
	}
	if name, ok := member(value, "namespace").(string); ok {
		for _, problem := range validation.IsDNS1123Label(name) {
			found = append(found, wrong(where+".namespace", "%s", problem)...)
		}
	}
	annotations, _ := member(value, "annotations").(map[string]any)
	for name := range annotations {
		for _, problem := range validation.IsQualifiedName(strings.ToLower(name)) {
			found = append(found, wrong(where+".annotations."+name, "%s", problem)...)
		}
	}
	return found
}

func checkLabels(where string, value any) []error {
	var found []error
	labels, _ := value.(map[string]any)
	for name, content := range labels {
		for _, problem := range validation.IsQualifiedName(name) {
			found = append(found, wrong(where+"."+name, "%s", problem)...)
		}
		text, _ := content.(string)
		for _, problem := range validation.IsValidLabelValue(text) {
			found = append(found, wrong(where+"."+name, "%s", problem)...)
		}
	}
	return found
}

// repeated finds elements that a list holds twice and may hold once. Members of a key that are not given have the
// schema's default.
func repeated(of any, where string, content []any) []error {
	kind := member(of, "x-kubernetes-list-type")
	if kind != "map" && kind != "set" {
		return nil
	}
	keys, _ := member(of, "x-kubernetes-list-map-keys").([]any)
	seen := map[string]bool{}
	for i, element := range content {
		identity := element
		if kind == "map" {
			parts := []any{}
			for _, key := range keys {
				part := member(element, key.(string))
				if part == nil {
					part = member(member(member(member(of, "items"), "properties"), key.(string)), "default")
				}
				parts = append(parts, part)
			}
			identity = parts
		}
		text := fmt.Sprint(identity)
		if seen[text] {
			return wrong(fmt.Sprintf("%s[%d]", where, i), "is there twice: %s", text)
		}
		seen[text] = true
	}
	return nil
}
