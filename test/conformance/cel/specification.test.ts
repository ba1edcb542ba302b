import { expect } from 'chai'
import { referenceSection } from '#test/support/reference-section.ts'
import { conformanceTests, type ConformanceTest, runConformanceTest } from './specification.ts'

const withoutProtobuf = 'values here are JSON; protobuf messages and wrappers are not built'
const notInKubernetes = 'Kubernetes does not enable this extension'
const alwaysChecked = 'Kubernetes never runs an expression that was not type-checked'

const bySuite: Readonly<Record<string, string>> = {
  block_ext: notInKubernetes,
  encoders_ext: notInKubernetes,
  math_ext: notInKubernetes,
  proto2: withoutProtobuf,
  proto2_ext: withoutProtobuf,
  proto3: withoutProtobuf,
  wrappers: withoutProtobuf,
}

const asUpstream = 'cel-go 0.26.0 as Kubernetes sets it up answers as we do'
const formatVersion = 'Kubernetes formats by version 2 of the strings extension, the suite expects version 4'

const byName: Readonly<Record<string, string>> = {
  'optionals/optionals/map_null_entry_no_such_key': asUpstream,
  'optionals/optionals/map_present_key_invalid_field': asUpstream,
  'fields/qualified_identifier_resolution/map_value_repeat_key': asUpstream,
  'fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous': asUpstream,
  'type_deductions/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate': asUpstream,
  'timestamps/duration_converters/get_milliseconds': asUpstream,
  'string_ext/value_errors/indexof_out_of_range': asUpstream,
  'string_ext/value_errors/lastindexof_out_of_range': asUpstream,
}

const protobuf =
  /\bValue\{|TestAllTypes|TestRequired|NestedEnum|GlobalEnum|google\.protobuf\.\w*(?:Value|Any|Struct|Mask|Empty)/

function reasonToSkip({ suite, section, name, expression, source }: ConformanceTest): string | undefined {
  const known = bySuite[suite] ?? byName[`${suite}/${section}/${name}`]
  if (known !== undefined) return known
  if (source.disableCheck === true) return alwaysChecked
  if (section === 'quoted_map_fields') return 'Kubernetes does not enable quoted names of fields'
  if (suite === 'string_ext' && section.startsWith('format')) return formatVersion
  if (suite === 'string_ext' && expression.includes('reverse'))
    return 'reverse() of strings is in version 3 of the extension'
  return protobuf.test(`${expression} ${JSON.stringify(source)}`) ? withoutProtobuf : undefined
}

function outcomeOf(test: ConformanceTest): string | undefined {
  try {
    return runConformanceTest(test)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Those that are left out one by one. */
function namesOf(all: readonly { readonly test: ConformanceTest }[]): string {
  const names = all.map(({ test }) => `${test.suite}/${test.section}/${test.name}`).filter((name) => name in byName)
  return names.length === 0 ? '' : ` (${names.map((name) => `\`${name}\``).join(', ')})`
}

describe("the conformance suites of CEL's specification", () => {
  const outcomes = conformanceTests().map((test) => ({ test, wrong: outcomeOf(test), reason: reasonToSkip(test) }))

  it('holds all tests that it held before', () => expect(outcomes.length).to.be.at.least(2300))

  for (const name of new Set(outcomes.map(({ test }) => test.suite)))
    it(`passes ${name}, but for the tests that are left out with a reason`, () => {
      const failed = outcomes
        .filter(({ test, wrong, reason }) => test.suite === name && wrong !== undefined && reason === undefined)
        .map(({ test, wrong }) => `${test.section}/${test.name}: ${test.expression}: ${wrong ?? ''}`)
      expect(failed).to.deep.equal([])
    })

  it('passes at least as many tests as before', () => {
    const passed = outcomes.filter(({ wrong }) => wrong === undefined).length
    expect(passed).to.be.at.least(1429)
  })

  it('are counted in docs/reference (KCP_UPDATE_REFERENCE=1 writes it)', () => {
    const passed = outcomes.filter(({ wrong }) => wrong === undefined)
    const skipped = outcomes.filter(({ wrong }) => wrong !== undefined)
    const lines = [
      '',
      `${outcomes.length} tests: ${passed.length} pass, ${skipped.length} are left out.`,
      '',
      '| suite | pass | left out |',
      '| --- | --- | --- |',
      ...[...Map.groupBy(outcomes, ({ test }) => test.suite)].map(([suite, all]) => {
        const count = all.filter(({ wrong }) => wrong === undefined).length
        return `| ${suite} | ${count} | ${all.length - count} |`
      }),
      '',
      'Left out, because:',
      '',
      ...[...Map.groupBy(skipped, ({ reason }) => reason ?? 'none').entries()]
        .toSorted(([, a], [, b]) => b.length - a.length)
        .map(([reason, all]) => `- ${reason}: ${all.length}${namesOf(all)}`),
      '',
    ]
    expect(referenceSection('upstream-suites.md', 'cel-spec', lines)).to.deep.equal(lines)
  })

  it('leaves out no test by name that passes', () => {
    const passing = outcomes
      .filter(({ test, wrong }) => wrong === undefined && `${test.suite}/${test.section}/${test.name}` in byName)
      .map(({ test }) => test.name)
    expect(passing).to.deep.equal([])
  })
})
