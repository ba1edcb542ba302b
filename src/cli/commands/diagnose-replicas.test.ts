import { expect } from 'chai'
import { replicasFindings } from './diagnose-replicas.ts'

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

describe('what kcp diagnose says about replicas', () => {
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
