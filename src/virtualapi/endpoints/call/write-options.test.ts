import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { writeOptionsOf } from './write-options.ts'

describe('the options of a write', () => {
  const asShown = (kind: string, more: object = {}): object => ({
    shown: { kind, apiVersion: 'meta.k8s.io/v1', ...more },
  })
  const defaults = { dryRun: false, fieldValidation: 'Warn' }
  for (const { verb, query, options } of [
    { verb: 'create', query: '', options: { ...defaults, ...asShown('CreateOptions') } },
    {
      verb: 'update',
      query: 'dryRun=All',
      options: { ...defaults, dryRun: true, ...asShown('UpdateOptions', { dryRun: ['All'] }) },
    },
    {
      verb: 'patch',
      query: 'fieldValidation=Strict',
      options: { dryRun: false, fieldValidation: 'Strict', ...asShown('UpdateOptions', { fieldValidation: 'Strict' }) },
    },
    { verb: 'create', query: 'fieldValidation=', options: { ...defaults, ...asShown('CreateOptions') } },
    { verb: 'create', query: 'force=true', options: { ...defaults, ...asShown('CreateOptions') } },
    {
      verb: 'create',
      query: 'fieldManager=kubectl-cr%C3%A9ate',
      options: { ...defaults, ...asShown('CreateOptions', { fieldManager: 'kubectl-créate' }) },
    },
    // DELETE has options of its own.
    { verb: 'delete', query: 'dryRun=Some', options: defaults },
    { verb: 'get', query: 'fieldValidation=x', options: defaults },
  ])
    it(`are read for ${verb} with "${query}", and shown to webhooks`, () => {
      expect(writeOptionsOf(new URLSearchParams(query), verb)).to.deep.equal(options)
    })

  for (const { verb, query, kind, field, message } of [
    {
      verb: 'create',
      query: 'dryRun=Some',
      kind: 'CreateOptions',
      field: 'dryRun',
      message: 'Unsupported value: ["Some"]: supported values: "All"',
    },
    {
      verb: 'update',
      query: 'fieldValidation=Maybe',
      kind: 'UpdateOptions',
      field: 'fieldValidation',
      message: 'Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"',
    },
    {
      verb: 'patch',
      query: 'force=false',
      kind: 'PatchOptions',
      field: 'force',
      message: 'Forbidden: may not be specified for non-apply patch',
    },
    {
      verb: 'create',
      query: `fieldManager=${'x'.repeat(129)}`,
      kind: 'CreateOptions',
      field: 'fieldManager',
      message: 'Too long: may not be more than 128 bytes',
    },
    {
      verb: 'create',
      query: 'fieldManager=a%0Ab',
      kind: 'CreateOptions',
      field: 'fieldManager',
      message: 'Invalid value: "a\\nb": invalid character U+000A (at position 1)',
    },
  ])
    it(`refuse ${verb} with "${query.slice(0, 30)}"`, () => {
      let refused: unknown
      try {
        writeOptionsOf(new URLSearchParams(query), verb)
      } catch (error) {
        refused = error
      }
      if (!isStatusError(refused, 'Invalid')) throw refused
      expect(refused.status.details).to.include({ group: 'meta.k8s.io', kind })
      expect(refused.status.details?.causes).to.have.length(1)
      expect(refused.status.details?.causes?.[0]).to.include({ field, message })
    })
})
