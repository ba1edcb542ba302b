import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { Exchange } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { deleteOptionsOf, readDeleteOptions } from './delete-options.ts'

/** A target of which deletion options need only the dry run. */
const newTarget = (): EndpointCall['target'] => ({ context: { dryRun: false } }) as EndpointCall['target']

async function refusal(run: () => unknown): Promise<string> {
  try {
    await run()
  } catch (error) {
    if (!isStatusError(error)) throw error
    return `${error.code} ${error.message}`
  }
  throw new Error('the options were accepted')
}

/** Reads the options of a DELETE with this query and body. */
async function read(query: string, body?: JsonObject, contentType = 'application/json') {
  const exchange = new Exchange({
    method: 'DELETE',
    url: `/clusters/a/api/v1/namespaces/x/pods/p?${query}`,
    rawHeaders: body === undefined ? [] : ['Content-Type', contentType],
    peerCertificate: undefined,
    body: () => Promise.resolve(Buffer.from(body === undefined ? '' : JSON.stringify(body))),
    signal: new AbortController().signal,
  })
  const target = newTarget()
  const options = await readDeleteOptions({ exchange, query: new URLSearchParams(query), target } as EndpointCall)
  return { options, dryRun: target.context.dryRun }
}

describe('DeleteOptions', () => {
  for (const { title, given, expected } of [
    { title: 'may be empty', given: {}, expected: {} },
    { title: 'have a grace period', given: { gracePeriodSeconds: 0 }, expected: { gracePeriodSeconds: 0 } },
    { title: 'ignore null', given: { gracePeriodSeconds: null, preconditions: null }, expected: {} },
    {
      title: 'have preconditions',
      given: { preconditions: { uid: 'u', resourceVersion: '7' } },
      expected: { uid: 'u', resourceVersion: '7' },
    },
    {
      title: 'orphan with orphanDependents',
      given: { orphanDependents: true },
      expected: { propagationPolicy: 'Orphan' },
    },
    {
      title: 'delete in the background without orphanDependents',
      given: { orphanDependents: false },
      expected: { propagationPolicy: 'Background' },
    },
    {
      title: 'have a propagation policy',
      given: { propagationPolicy: 'Foreground' },
      expected: { propagationPolicy: 'Foreground' },
    },
  ])
    it(title, () => expect(deleteOptionsOf(given, newTarget())).to.deep.equal(expected))

  for (const { given, error } of [
    { given: { gracePeriodSeconds: '5' }, error: '400 gracePeriodSeconds must be an integer, not "5"' },
    { given: { gracePeriodSeconds: 1.5 }, error: '400 gracePeriodSeconds must be an integer, not 1.5' },
    { given: { preconditions: 'u' }, error: '400 preconditions must be an object, not "u"' },
    { given: { preconditions: { uid: 7 } }, error: '400 preconditions.uid must be a string, not 7' },
    { given: { orphanDependents: 'true' }, error: '400 orphanDependents must be a boolean, not "true"' },
    { given: { dryRun: 'All' }, error: '400 dryRun must be a list, not "All"' },
    {
      given: { dryRun: ['Some'] },
      error:
        '422 DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    },
    {
      given: { propagationPolicy: 'Later' },
      error:
        '422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Later": supported values: "Foreground", "Background", "Orphan", "nil"',
    },
    {
      given: { propagationPolicy: 'Orphan', orphanDependents: true },
      error:
        '422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
    },
  ] as { given: JsonObject; error: string }[])
    it(`are refused: ${JSON.stringify(given)}`, async () => {
      expect(await refusal(() => deleteOptionsOf(given, newTarget()))).to.equal(error)
    })

  it('come from the query if there is no body', async () => {
    const query = 'gracePeriodSeconds=5&propagationPolicy=Foreground&uid=u&resourceVersion='
    expect(await read(query)).to.deep.equal({
      options: { gracePeriodSeconds: 5, propagationPolicy: 'Foreground', uid: 'u' },
      dryRun: false,
    })
  })

  it('come from the body if there is one', async () => {
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 3 }
    expect(await read('gracePeriodSeconds=5', body)).to.deep.equal({
      options: { gracePeriodSeconds: 3 },
      dryRun: false,
    })
  })

  for (const { query, body } of [
    { query: 'dryRun=All', body: undefined },
    { query: 'dryRun=All', body: {} },
    { query: '', body: { dryRun: ['All'] } },
  ])
    it(`make a dry run with query "${query}" and body ${body === undefined ? 'none' : JSON.stringify(body)}`, async () => {
      expect(await read(query, body)).to.have.property('dryRun', true)
    })

  it('are refused with a body of another kind', async () => {
    expect(await refusal(() => read('', { kind: 'Pod' }))).to.equal('400 the body must be DeleteOptions, not Pod')
  })
})
