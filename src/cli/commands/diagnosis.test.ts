import { expect } from 'chai'
import type { Condition } from '#apimachinery/meta/index.ts'
import {
  addressFinding,
  apiServiceFinding,
  type Finding,
  findingsText,
  hostFinding,
  kindsFinding,
  leaderFinding,
  objectFinding,
  objectsFindings,
  replicasFindings,
  type Watched,
} from './diagnosis.ts'

const nowMs = Date.parse('2026-03-01T00:00:00Z')
const error = { error: 'connection refused' }
const object = { apiVersion: 'v1', kind: 'X', metadata: { name: 'x' } }
const condition = (type: string, status: Condition['status'], reason: string, message: string): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-02-28T23:00:00Z',
})
const available = (status: Condition['status']) => ({
  value: { ...object, status: { conditions: [condition('Available', status, 'R', 'no endpoints')] } },
})
const lease = (spec: object) => ({ value: { ...object, spec } })
const url = { value: 'https://kcp.example' }

function cluster(conditions: Condition[], metadata: object = {}): Watched {
  return { ...object, metadata: { name: 'acme', ...metadata }, status: { conditions } }
}
const options = { kind: 'LogicalCluster', conditions: ['Ready', 'KubeconfigsWritten'], nowMs }

describe('a diagnosis', () => {
  for (const { finding, ok, what } of [
    { finding: hostFinding({ value: { gitVersion: 'v1.34.3' } }), ok: true, what: 'Kubernetes v1.34.3' },
    { finding: hostFinding({ value: { gitVersion: 'v1.30.0-gke.1' } }), ok: true, what: 'v1.30.0-gke.1' },
    { finding: hostFinding({ value: { gitVersion: 'v1.29.9' } }), ok: false, what: 'the host is Kubernetes v1.29.9' },
    { finding: hostFinding({ value: {} }), ok: false, what: 'unknown' },
    { finding: hostFinding(error), ok: false, what: 'does not answer: connection refused' },
    { finding: kindsFinding({ value: [] }, { starts: 'kcp operator' }), ok: true, what: 'are served' },
    {
      finding: kindsFinding({ value: ['placements.kcp.dev'] }, { starts: 'kcp operator' }),
      ok: false,
      what: 'missing: placements.kcp.dev',
    },
    { finding: apiServiceFinding({ value: undefined }), ok: false, what: 'is missing' },
    { finding: apiServiceFinding(available('True')), ok: true, what: 'is Available' },
    { finding: apiServiceFinding(available('False')), ok: false, what: 'is not Available: no endpoints' },
    { finding: apiServiceFinding({ value: object }), ok: false, what: 'has not checked it yet' },
    { finding: addressFinding({ value: undefined }, undefined), ok: false, what: 'has published no address' },
    { finding: addressFinding(url, { value: 200 }), ok: true, what: 'https://kcp.example is ready' },
    { finding: addressFinding(url, { value: 500 }), ok: false, what: '/readyz answers 500' },
    { finding: addressFinding(url, error), ok: false, what: 'does not answer from here: connection refused' },
    {
      finding: leaderFinding(lease({ holderIdentity: 'a', renewTime: '2026-02-28T23:59:46.000000Z' }), nowMs),
      ok: true,
      what: '"a" is the leader',
    },
    {
      finding: leaderFinding(lease({ holderIdentity: 'a', renewTime: '2026-02-28T23:50:00.000000Z' }), nowMs),
      ok: false,
      what: 'last renewed its Lease 10m ago',
    },
    { finding: leaderFinding(lease({ holderIdentity: 'a' }), nowMs), ok: false, what: 'an unknown time ago' },
    { finding: leaderFinding(lease({ holderIdentity: '' }), nowMs), ok: false, what: 'no kcp operator is the leader' },
    { finding: leaderFinding({ value: undefined }, nowMs), ok: false, what: 'no kcp operator is the leader' },
    {
      finding: objectFinding(cluster([]), options),
      ok: false,
      what: 'LogicalCluster "acme" has no condition Ready: no kcp operator has handled it yet',
    },
    {
      finding: objectFinding(cluster([condition('Ready', 'False', 'NotServed', 'its API does not answer')]), options),
      ok: false,
      what: 'LogicalCluster "acme": Ready=False for 60m (NotServed): its API does not answer',
    },
    {
      finding: objectFinding(
        cluster([
          condition('Ready', 'True', 'Served', 'it is'),
          condition('KubeconfigsWritten', 'False', 'NamespaceMissing', 'namespace "x" does not exist'),
        ]),
        options,
      ),
      ok: false,
      what: 'KubeconfigsWritten=False for 60m (NamespaceMissing): namespace "x" does not exist',
    },
    {
      finding: objectFinding(
        cluster([
          condition('Ready', 'True', 'Answers', 'its API answers'),
          condition('DeletionsSuspended', 'True', 'TooManyAtOnce', '7 of the 8 workloads are gone'),
        ]),
        options,
      ),
      ok: false,
      what: 'DeletionsSuspended=True for 60m (TooManyAtOnce): 7 of the 8 workloads are gone',
    },
    {
      finding: objectFinding(
        cluster([condition('ContentDeleted', 'False', 'ContentRemains', '2 objects are left')], {
          deletionTimestamp: '2026-02-26T00:00:00Z',
        }),
        options,
      ),
      ok: false,
      what: 'has been terminating for 3d: 2 objects are left',
    },
  ])
    it(`says "${what}"`, () => {
      expect(finding?.ok).to.equal(ok)
      expect(finding?.what).to.contain(what)
      if (!ok) expect(finding?.todo).to.match(/\w{3}/)
    })

  it('tells what to do about a member that is lost', () => {
    const found = objectFinding(cluster([condition('Ready', 'Unknown', 'Lost', 'no answer for 40 s')]), options)
    expect(found?.todo).to.contain('kcp fence')
  })

  it('says nothing about an object that is well', () => {
    expect(objectFinding(cluster([condition('Ready', 'True', 'Served', 'it is')]), options)).to.equal(undefined)
  })

  it('names some objects, and counts the others', () => {
    const one: Finding = { ok: false, what: 'one', todo: 'mend it' }
    const lines = objectsFindings('LogicalClusters', { value: { total: 90, bad: 70, findings: [one] } })
    expect(lines.map(({ what }) => what)).to.deep.equal(['one', 'LogicalClusters: 69 more have problems'])
    expect(objectsFindings('LogicalClusters', { value: { total: 9, bad: 0, findings: [] } })).to.have.length(1)
  })

  it('prints what to do below what is wrong', () => {
    const findings: Finding[] = [
      { ok: true, what: 'fine' },
      { ok: false, what: 'bad', todo: 'mend it' },
    ]
    expect(findingsText(findings)).to.equal('ok    fine\nWRONG bad\n      -> mend it')
  })
})

describe('what kcp diagnose says about replicas', () => {
  const now = Date.parse('2026-01-01T00:00:20Z')

  const lease = (name: string, buckets: string, renewTime = '2026-01-01T00:00:18.000000Z') => ({
    apiVersion: 'coordination.k8s.io/v1' as const,
    kind: 'Lease' as const,
    metadata: { name, annotations: { 'kcp.dev/buckets': buckets, 'kcp.dev/peer-address': '10.0.0.1:6444' } },
    spec: { leaseDurationSeconds: 10, renewTime },
  })

  const listOf = (items: ReturnType<typeof lease>[]) => ({
    value: { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '1' }, items },
  })

  const half = '0'.repeat(32)

  const otherHalf = 'f'.repeat(32)

  for (const { title, items, said } of [
    { title: 'none', items: [], said: ['wrong: no kcp apiserver has a Lease in kcp-system'] },
    {
      title: 'two that share',
      items: [lease('a', half + otherHalf), lease('b', otherHalf + half)],
      said: [
        'ok: kcp apiserver "a" at 10.0.0.1:6444 answers for 128 of 256 buckets of logical clusters',
        'ok: kcp apiserver "b" at 10.0.0.1:6444 answers for 128 of 256 buckets of logical clusters',
      ],
    },
    {
      title: 'one that is gone, and a part that nobody has',
      items: [lease('a', half + otherHalf, '2026-01-01T00:00:00.000000Z')],
      said: [
        'wrong: kcp apiserver "a" at 10.0.0.1:6444 last renewed its Lease 20s ago, and holds 128 of 256 buckets of logical clusters',
        'wrong: no replica answers for 128 of 256 buckets of logical clusters',
      ],
    },
    {
      title: 'two that claim the same',
      items: [lease('a', 'f'.repeat(64)), lease('b', half + otherHalf)],
      said: [
        'ok: kcp apiserver "a" at 10.0.0.1:6444 answers for 256 of 256 buckets of logical clusters',
        'ok: kcp apiserver "b" at 10.0.0.1:6444 answers for 128 of 256 buckets of logical clusters',
        'wrong: 128 buckets of logical clusters are moving between replicas',
      ],
    },
  ])
    it(title, () => {
      const findings = replicasFindings(listOf(items), now)
      expect(findings.map(({ ok, what }) => `${ok ? 'ok' : 'wrong'}: ${what}`)).to.deep.equal(said)
    })
})
