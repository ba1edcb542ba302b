// Validation of a CustomResourceDefinition: names, versions, columns, subresources, conversion. Schemas are validated
// in validate-crd-schema.ts.
import {
  dns1035LabelErrors,
  dns1123SubdomainErrors,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { CrdColumn, CrdNames, CrdSubresources, CrdVersion, CustomResourceDefinition } from './crd-types.ts'
import { approvalAnnotation, approvalOf } from './api-approval.ts'
import { isEstablished } from './crd-conditions.ts'
import { patternLimitCauses } from './pattern-limit.ts'
import { keptRules } from './kept-rules.ts'
import { validateCrdSchema, validateSelectableFields } from './validate-crd-schema.ts'
import { causesOf } from '#virtualapi/kinds/validation/vocabulary.ts'
import { caBundle, webhookClient } from '#virtualapi/kinds/validation/webhook-client.ts'

/** Validation errors of a CRD that has its defaults. */
export function validateCrd(crd: CustomResourceDefinition): StatusCause[] {
  const { metadata, spec } = crd
  const name = metadata.name ?? ''
  if (name === '' || name === `${spec.names.plural}.${spec.group}`) return validateBody(crd)
  return [fieldInvalid('metadata.name', name, 'must be spec.names.plural+"."+spec.group'), ...validateBody(crd)]
}

function validateBody(crd: CustomResourceDefinition, old?: CustomResourceDefinition): StatusCause[] {
  const { spec } = crd
  const tooLarge = patternLimitCauses(crd)
  // Other checks are skipped, because they would compile the patterns.
  if (tooLarge.length > 0) return tooLarge
  const causes = [...validateSpec(crd, old), ...validateStoredVersions(crd), ...validateApproval(crd, old)]
  if (spec.preserveUnknownFields === true && old?.spec.preserveUnknownFields !== true) {
    const why =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead'
    causes.push(fieldInvalid('spec.preserveUnknownFields', true, why))
  }
  return causes
}

/** Validation errors of a changed CRD: the errors of the CRD itself, and changes of immutable fields. */
export function validateCrdUpdate(crd: CustomResourceDefinition, old: CustomResourceDefinition): StatusCause[] {
  const causes = validateBody(crd, old)
  const immutable = (field: string, value: string, before: string): void => {
    if (value !== before) causes.push(fieldInvalid(field, value, 'field is immutable'))
  }
  if (isEstablished(old)) {
    immutable('spec.scope', crd.spec.scope, old.spec.scope)
    immutable('spec.names.kind', crd.spec.names.kind, old.spec.names.kind)
  }
  immutable('spec.group', crd.spec.group, old.spec.group)
  immutable('spec.names.plural', crd.spec.names.plural, old.spec.names.plural)
  return causes
}

function validateSpec({ spec }: CustomResourceDefinition, old?: CustomResourceDefinition): StatusCause[] {
  const causes: StatusCause[] = []
  const { group, scope, versions, names } = spec
  if (group === '') causes.push(fieldRequired('spec.group'))
  else {
    const errors = dns1123SubdomainErrors(group)
    if (errors.length > 0) causes.push(fieldInvalid('spec.group', group, errors.join(',')))
    else if (!group.includes('.'))
      causes.push(fieldInvalid('spec.group', group, 'should be a domain with at least one dot'))
  }
  if (scope === '') causes.push(fieldRequired('spec.scope'))
  else if (scope !== 'Cluster' && scope !== 'Namespaced') {
    causes.push(fieldNotSupported('spec.scope', scope, ['Cluster', 'Namespaced']))
  }
  for (const [i, version] of versions.entries()) {
    if (version.schema?.openAPIV3Schema === undefined) {
      causes.push(fieldRequired(`spec.versions[${String(i)}].schema.openAPIV3Schema`))
    }
  }
  for (const [i, { name }] of versions.entries()) {
    const errors = dns1035LabelErrors(name)
    if (errors.length === 0) continue
    causes.push(fieldInvalid(`spec.versions[${String(i)}].name`, name, errors.join(',')))
    // Upstream reports the name of the first version again as spec.version.
    if (i === 0) causes.push(fieldInvalid('spec.version', name, errors.join(',')))
  }
  causes.push(...validateVersions(versions, old?.spec.versions))
  const all = versionsAsGoPrints(versions)
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    causes.push(invalidVersions(all, 'must contain unique version names'))
  }
  if (versions.filter(({ storage }) => storage).length !== 1) {
    causes.push(invalidVersions(all, 'must have exactly one version marked as storage version'))
  }
  for (const key of ['plural', 'singular', 'kind', 'listKind'] as const) {
    if ((names[key] ?? '') === '') causes.push(fieldRequired(`spec.names.${key}`))
  }
  causes.push(...validateNames(names, 'spec.names'), ...validateConversion(spec.conversion, old))
  return causes
}

/**
 * Validation errors of the versions. Upstream's internal type has one field for each part that is equal in all
 * versions, and errors name that field: a CRD with one version gets errors about `spec.validation`, not about
 * `spec.versions[0].schema`.
 */
function validateVersions(versions: CrdVersion[], old: readonly CrdVersion[] = []): StatusCause[] {
  const causes: StatusCause[] = []
  const keptOf = keptRules(old)
  // One budget for the defaults of all versions together.
  const work = new WorkBudget()
  const shared = (key: 'schema' | 'subresources' | 'additionalPrinterColumns' | 'selectableFields'): boolean => {
    const values = versions.map((version) => version[key] as unknown as JsonValue | undefined)
    return values[0] !== undefined && values.every((value) => jsonEqual(value, values[0]))
  }
  const paths = {
    schema: shared('schema') ? 'spec.validation' : undefined,
    subresources: shared('subresources') ? 'spec.subresources' : undefined,
    additionalPrinterColumns: shared('additionalPrinterColumns') ? 'spec.additionalPrinterColumns' : undefined,
    selectableFields: shared('selectableFields') ? 'spec.selectableFields' : undefined,
  }
  for (const [i, version] of versions.entries()) {
    const at = `spec.versions[${String(i)}]`
    const { deprecated, deprecationWarning, schema, subresources, additionalPrinterColumns, selectableFields } = version
    for (const why of deprecationErrors(deprecated ?? false, deprecationWarning)) {
      causes.push(fieldInvalid(`${at}.deprecationWarning`, deprecationWarning ?? '', why))
    }
    const first = i === 0
    const root = schema?.openAPIV3Schema
    if (root !== undefined && (first || paths.schema === undefined)) {
      const path = `${paths.schema ?? `${at}.schema`}.openAPIV3Schema`
      causes.push(
        ...validateCrdSchema(root, path, {
          hasStatus: subresources?.status !== undefined,
          kept: keptOf(version),
          work,
        }),
      )
    }
    if (subresources !== undefined && (first || paths.subresources === undefined)) {
      causes.push(...validateSubresources(subresources, paths.subresources ?? `${at}.subresources`))
    }
    if (additionalPrinterColumns !== undefined && (first || paths.additionalPrinterColumns === undefined)) {
      const path = paths.additionalPrinterColumns ?? `${at}.additionalPrinterColumns`
      for (const [j, column] of additionalPrinterColumns.entries()) {
        causes.push(...validateColumn(column, `${path}[${String(j)}]`))
      }
    }
    if (selectableFields !== undefined && root !== undefined && (first || paths.selectableFields === undefined)) {
      causes.push(
        ...validateSelectableFields(selectableFields, root, paths.selectableFields ?? `${at}.selectableFields`),
      )
    }
  }
  return causes
}

function deprecationErrors(deprecated: boolean, warning: string | undefined): string[] {
  if (warning === undefined) return []
  if (!deprecated) return ['can only be set for deprecated versions']
  const errors: string[] = []
  if (Buffer.byteLength(warning) > 256) errors.push('must be <= 256 characters long')
  if (warning === '') errors.push('must not be an empty string')
  const bad = warning.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u)
  if (bad >= 0) {
    const index = String(Buffer.byteLength(warning.slice(0, bad)))
    errors.push(`must only contain printable UTF-8 characters; non-printable character found at index ${index}`)
  }
  return errors
}

function validateNames(names: CrdNames, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  const label = (field: string, value = '', { evenEmpty = false } = {}): void => {
    const errors = value === '' && !evenEmpty ? [] : dns1035LabelErrors(value)
    if (errors.length > 0) causes.push(fieldInvalid(`${path}.${field}`, value, errors.join(',')))
  }
  const kind = (field: string, value: string | undefined): void => {
    const errors = value === undefined || value === '' ? [] : dns1035LabelErrors(value.toLowerCase())
    if (errors.length === 0) return
    const why = `may have mixed case, but should otherwise match: ${errors.join(',')}`
    causes.push(fieldInvalid(`${path}.${field}`, value ?? '', why))
  }
  label('plural', names.plural)
  label('singular', names.singular)
  kind('kind', names.kind)
  kind('listKind', names.listKind)
  for (const [i, name] of (names.shortNames ?? []).entries())
    label(`shortNames[${String(i)}]`, name, { evenEmpty: true })
  if (names.kind !== '' && names.kind === names.listKind) {
    causes.push(fieldInvalid(`${path}.listKind`, names.listKind, 'kind and listKind may not be the same'))
  }
  for (const [i, name] of (names.categories ?? []).entries())
    label(`categories[${String(i)}]`, name, { evenEmpty: true })
  return causes
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string']
const columnFormats = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password']

function validateColumn({ name, type, format, jsonPath }: CrdColumn, path: string): StatusCause[] {
  const causes: StatusCause[] = []
  if (name === '') causes.push(fieldRequired(`${path}.name`))
  const types = `must be one of ${columnTypes.join(',')}`
  if (type === '') causes.push(fieldRequired(`${path}.type`, types))
  else if (!columnTypes.includes(type)) causes.push(fieldInvalid(`${path}.type`, type, types))
  if (format !== undefined && format !== '' && !columnFormats.includes(format)) {
    causes.push(fieldInvalid(`${path}.format`, format, `must be one of ${columnFormats.join(',')}`))
  }
  if (jsonPath === '') causes.push(fieldRequired(`${path}.JSONPath`))
  else causes.push(...simplePathErrors(jsonPath, `${path}.JSONPath`))
  return causes
}

function simplePathErrors(jsonPath: string, path: string): StatusCause[] {
  return jsonPath.startsWith('.') ? [] : [fieldInvalid(path, jsonPath, 'must be a simple json path starting with .')]
}

function validateSubresources({ scale }: CrdSubresources, path: string): StatusCause[] {
  if (scale === undefined) return []
  const causes: StatusCause[] = []
  const check = (name: 'specReplicasPath' | 'statusReplicasPath', prefix: string): void => {
    const field = `${path}.scale.${name}`
    const errors = simplePathErrors(scale[name], field)
    if (scale[name] === '') causes.push(fieldRequired(field))
    else if (errors.length > 0) causes.push(...errors)
    else if (!scale[name].startsWith(`${prefix}.`)) {
      causes.push(fieldInvalid(field, scale[name], `should be a json path under ${prefix}`))
    }
  }
  check('specReplicasPath', '.spec')
  check('statusReplicasPath', '.status')
  const { labelSelectorPath: selector = '' } = scale
  if (selector !== '') {
    const field = `${path}.scale.labelSelectorPath`
    const errors = simplePathErrors(selector, field)
    if (errors.length > 0) causes.push(...errors)
    else if (!/^\.(spec|status)\./.test(selector)) {
      causes.push(fieldInvalid(field, selector, 'should be a json path under either .spec or .status'))
    }
  }
  return causes
}

function validateConversion(
  conversion: CustomResourceDefinition['spec']['conversion'],
  old?: CustomResourceDefinition,
): StatusCause[] {
  if (conversion === undefined) return []
  const causes: StatusCause[] = []
  const { strategy, webhook } = conversion
  const path = 'spec.conversion'
  if (strategy === '') causes.push(fieldRequired(`${path}.strategy`))
  else if (strategy !== 'None' && strategy !== 'Webhook') {
    causes.push(fieldNotSupported(`${path}.strategy`, strategy, ['None', 'Webhook']))
  }
  const { clientConfig } = webhook ?? {}
  const versions = webhook?.conversionReviewVersions ?? []
  if (strategy !== 'Webhook') {
    const why = 'should not be set when strategy is not set to Webhook'
    if (clientConfig !== undefined) causes.push(fieldForbidden(`${path}.webhookClientConfig`, why))
    if (versions.length > 0) causes.push(fieldForbidden(`${path}.conversionReviewVersions`, why))
    return causes
  }
  if (clientConfig === undefined) {
    causes.push(fieldRequired(`${path}.webhookClientConfig`, 'required when strategy is set to Webhook'))
  } else {
    causes.push(...causesOf(webhookClient, `${path}.webhookClientConfig`, clientConfig))
    const before = old?.spec.conversion?.webhook?.clientConfig?.['caBundle']
    if (old !== undefined && isEstablished(old) && causesOf(caBundle, '', before).length === 0)
      causes.push(...causesOf(caBundle, `${path}.webhookClientConfig.caBundle`, clientConfig['caBundle']))
  }
  const field = `${path}.conversionReviewVersions`
  if (versions.length === 0) causes.push(fieldRequired(field))
  for (const [i, version] of versions.entries()) {
    if (versions.indexOf(version) < i) causes.push(fieldInvalid(`${field}[${String(i)}]`, version, 'duplicate version'))
    else
      for (const why of dns1035LabelErrors(version)) causes.push(fieldInvalid(`${field}[${String(i)}]`, version, why))
  }
  if (versions.length === 0) return causes
  if (!versions.some((version) => version === 'v1' || version === 'v1beta1')) {
    causes.push(fieldInvalid(field, versions, 'must include at least one of v1, v1beta1'))
  }
  return causes
}

function validateStoredVersions({ spec, status }: CustomResourceDefinition): StatusCause[] {
  const stored = status?.storedVersions ?? []
  const field = 'status.storedVersions'
  if (stored.length === 0) return [fieldInvalid(field, null, 'must have at least one stored version')]
  const causes: StatusCause[] = []
  for (const { name, storage } of spec.versions) {
    if (storage && !stored.includes(name))
      causes.push(fieldInvalid(field, stored, `must have the storage version ${name}`))
  }
  const known = new Set(spec.versions.map(({ name }) => name))
  for (const [i, name] of stored.entries()) {
    if (known.has(name)) continue
    const why = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`
    causes.push(fieldInvalid(`${field}[${String(i)}]`, name, why))
  }
  return causes
}

function validateApproval(crd: CustomResourceDefinition, old?: CustomResourceDefinition): StatusCause[] {
  const approval = approvalOf(crd)
  // As upstream: an update that does not change the state of the approval is not refused because of that state.
  if (old !== undefined && approvalOf(old)?.state === approval?.state) return []
  const field = `metadata.annotations[${approvalAnnotation}]`
  if (approval?.state === 'missing') return [fieldRequired(field, approval.message)]
  if (approval?.state !== 'invalid') return []
  return [fieldInvalid(field, crd.metadata.annotations?.[approvalAnnotation] ?? '', approval.message)]
}

/**
 * The versions as errors print them: as Go's internal struct, in which fields that all versions share are null. A
 * schema that differs between versions is printed as the client sent it.
 */
function versionsAsGoPrints(versions: readonly CrdVersion[]): JsonObject[] {
  const own = (key: keyof CrdVersion): ((version: CrdVersion) => JsonValue) => {
    const values = versions.map((version) => version[key] as unknown as JsonValue | undefined)
    const common = values.every((value) => value !== undefined && jsonEqual(value, values[0] ?? null))
    return (version) => (common ? null : ((version[key] as unknown as JsonValue | undefined) ?? null))
  }
  const [schema, subresources] = [own('schema'), own('subresources')]
  const [columns, fields] = [own('additionalPrinterColumns'), own('selectableFields')]
  return versions.map((version) => ({
    Name: version.name,
    Served: version.served,
    Storage: version.storage,
    Deprecated: version.deprecated ?? false,
    DeprecationWarning: version.deprecationWarning ?? null,
    Schema: schema(version),
    Subresources: subresources(version),
    AdditionalPrinterColumns: columns(version),
    SelectableFields: fields(version),
  }))
}

function invalidVersions(shown: readonly JsonObject[], detail: string): StatusCause {
  return {
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${JSON.stringify(shown)}: ${detail}`,
    field: 'spec.versions',
  }
}
