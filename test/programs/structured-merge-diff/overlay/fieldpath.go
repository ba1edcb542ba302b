package fieldpath

// RecordedFilter is a filter as data: the fields it leaves out, where it is of that kind.
func RecordedFilter(f Filter) (kind string, exclude *Set) {
	switch t := f.(type) {
	case excludeFilter:
		return "exclude", t.excludeSet
	case includeMatcherFilter:
		return "include", nil
	}
	return "other", nil
}
