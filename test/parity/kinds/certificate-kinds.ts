// certificates.k8s.io.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { waitFor } from '#test/support/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { valueAt, type Session } from '#test/parity/support/session.ts'
import { kindRows } from './kind-table.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const pem = (type: string, data: string): string =>
  base64(`-----BEGIN ${type}-----\n${(data.match(/.{1,64}/g) ?? []).join('\n')}\n-----END ${type}-----\n`)

/** Requested by jane, in devs and ops; ECDSA. */
const request = pem(
  'CERTIFICATE REQUEST',
  [
    'MIHnMIGOAgEAMCwxDTALBgNVBAoMBGRldnMxDDAKBgNVBAoMA29wczENMAsGA1UEAwwEamFuZTBZMBMGByqGSM49AgEGCCqGSM49',
    'AwEHA0IABMJU+oQV5wsCyIJZvm35gQZymSojuDMPHJT8wRH2osQ+0lEojAhJoHs7oIlVGZhBvYG/M+T2+u11yGqmOPvFn7ygADAK',
    'BggqhkjOPQQDAgNIADBFAiEAp+owfSNLSTSIjU1jWzPYf6p4qE3yK4CbghkQImxVoE4CIGu+FO/ZCY/7FPBM2TsyJXQX9TkxrWBR',
    'KG1FLuB2d3fK',
  ].join(''),
)
/** Requested by root, in system:masters; RSA. */
const mastersRequest = pem(
  'CERTIFICATE REQUEST',
  [
    'MIICbTCCAVUCAQAwKDEXMBUGA1UECgwOc3lzdGVtOm1hc3RlcnMxDTALBgNVBAMMBHJvb3QwggEiMA0GCSqGSIb3DQEBAQUAA4IB',
    'DwAwggEKAoIBAQDe6j5t7Lc2OiSKYD45gN7iXvJmO2qE8NDshpAOmqH7sjMnr9TyOLkMbVaha1a3JJIUWBakR/s/kG5DwdKF2ape',
    'RhcHT+qI/BPqEmkvLuWdrmjUNZ8fCbzJWoap1Fb+xg6QBnozCX9YSQrB+sQiLkmPgOhM/KShkzuqlGOsxNB+dt5AWU+0oBRIeSzM',
    'Cn0IdhnZWNROB9UwXvXSGMBqc0BWRsBM/RGnqCpvMN5o/3KJ6xNMQPTfe3+il3e/SNhGTMDywqcfnv29g8MVRYmlPQLT8BwCFFS/',
    'TsVogKunh8SVh+Mpe8xYT0yTpsHWG/Aoo02PutwYspiDPCYfPRC7iAvnAgMBAAGgADANBgkqhkiG9w0BAQsFAAOCAQEAafnTe0bA',
    'ar2kKFxmcqKj6/Syu0PWw1q4bJqmrSRWVaVxxMzfrWlEQmhdWKsExcjADo+fvuOqt0dJxx4DS2lE2JmfKr95I3CnnjbH5TLGOEjL',
    'xFQbvBh++9bzCrUJlyUct135OPFirNjMMYyppdxJSmdKnrutj8H58kN1x31Z24QgPmKwUeKgbmUqNRsnlJdZ3pLDGCIZttdbJv6h',
    'vTSaTxfOpCM8PbhLyeBnJpsNIt3XHGCvTR5byaLmamwF2XeTPYSUdVJ+h2/gtUhKspyqNAqMpVIMog+FYJhcZEt0AP3pV1K0VPeA',
    '4vBWbHQDeFtO252N4yB4w21ckLkeHCjZgQ==',
  ].join(''),
)
/** A certificate of jane, self-signed. */
const certificate = pem(
  'CERTIFICATE',
  [
    'MIIBdTCCARugAwIBAgIUNbydpoHtaM1N2Cq1Y6j9qVtT0j8wCgYIKoZIzj0EAwIwDzENMAsGA1UEAwwEamFuZTAgFw0yNjExMjEx',
    'ODM1MTJaGA8yMTI2MTAyODE4MzUxMlowDzENMAsGA1UEAwwEamFuZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABMJU+oQV5wsC',
    'yIJZvm35gQZymSojuDMPHJT8wRH2osQ+0lEojAhJoHs7oIlVGZhBvYG/M+T2+u11yGqmOPvFn7yjUzBRMB0GA1UdDgQWBBTgNKy5',
    'wGrT1hhZ44AN+tPujQQ5EDAfBgNVHSMEGDAWgBTgNKy5wGrT1hhZ44AN+tPujQQ5EDAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49',
    'BAMCA0gAMEUCIQDZKQMMjcR1btPMoDWJWYBsLHigeBH0NBJP7BfFebivLQIgWWJkI8kLeQcUVRNXdS30MYbWP8b5+4Kd3QbwTuU2',
    'MOA=',
  ].join(''),
)
/** The signature is from another key. */
const forgedRequest = pem(
  'CERTIFICATE REQUEST',
  [
    'MIHnMIGOAgEAMCwxDTALBgNVBAoMBGRldnMxDDAKBgNVBAoMA29wczENMAsGA1UEAwwEamFuZTBZMBMGByqGSM49AgEGCCqGSM49',
    'AwEHA0IABMJU+oQV5wsCyIJZvm35gQZymSojuDMPHJT8wRH2osQ+0lEojAhJoHs7oIlVGZhBvYG/M+T2+u11yGqmOPvFn7ygADAK',
    'BggqhkjOPQQDAgNIADBFAiEAp+owfSNLSTSIjU1jWzPYf6p4qE3yK4CbghkQImxVoE4CIGu+FO/ZCY/7FPBM2TsyJXQX9TkxrWBR',
    'KG1FLuB2d3fL',
  ].join(''),
)
const truncatedRequest = pem(
  'CERTIFICATE REQUEST',
  'MIHzMIGaAgEAMDgxFTATBgNVBAoMDHN5c3RlbTpub2RlczEfMB0GA1UEAwwWc3lzdGVtOm5vZGU6bm9kZS0xMC4xLjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKMl',
)
const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })
const kind = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' }
const spec = { request, signerName: 'example.com/x', usages: ['client auth'] }
const condition = (type: string, rest: JsonObject = {}): JsonObject => ({
  ...{ type, status: 'True', reason: 'R', message: 'M', lastUpdateTime: '2020-01-01T00:00:00Z' },
  ...rest,
})
const conditions = (...list: JsonObject[]): JsonObject => ({ status: { conditions: list } })

const pathOfNew = (name: string): string => `/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}-$ID`

/** Creates a request, then runs `ask` on it. */
function life(title: string, name: string, ask: (session: Session, path: string) => Promise<void>): Row {
  return row(`${kind.apiVersion} ${kind.kind}: ${title}`, async (session) => {
    await session.create({ ...kind, metadata: wide(name), spec })
    await ask(session, pathOfNew(name))
  })
}

/** Sends what `kubectl certificate approve` sends: the whole object with one more condition. */
const verdict = (session: Session, path: string, type: string): Promise<unknown> =>
  session.change(path, (object) => Object.assign(object, conditions(condition(type))), { subresource: 'approval' })

const lifeRows: readonly Row[] = [
  life('approved', 'approved', async (session, path) => {
    await session.get(`${path}/approval`)
    await verdict(session, path, 'Approved')
    await verdict(session, path, 'Denied')
    await session.patch(`${path}/approval`, conditions(condition('Approved'), condition('Denied')))
    await session.patch(`${path}/approval`, conditions(condition('Approved', { message: 'other' })))
    await session.patch(`${path}/approval`, { status: { conditions: null } })
    await session.patch(`${path}/status`, conditions(condition('Approved', { message: 'third' })))
    await session.patch(`${path}/status`, { status: { conditions: [] } })
    await session.patch(path, conditions())
    await session.get(path, { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } })
  }),
  life('denied', 'denied', async (session, path) => {
    await verdict(session, path, 'Denied')
    await verdict(session, path, 'Approved')
    await session.patch(`${path}/status`, conditions(condition('Denied'), condition('Failed')))
    await session.patch(`${path}/status`, conditions(condition('Denied')))
    await session.get(path, { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } })
  }),
  life('an invalid condition', 'wrong', async (session, path) => {
    await session.patch(`${path}/approval`, conditions(condition('')))
    await session.patch(`${path}/approval`, conditions(condition('Approved', { status: 'False' })))
    await session.patch(`${path}/approval`, conditions(condition('Approved', { status: '' })))
    await session.patch(`${path}/approval`, conditions(condition('Other', { status: 'Huh' })))
    await session.patch(`${path}/approval`, conditions(condition('Approved'), condition('Approved')))
    await session.patch(`${path}/approval`, conditions(condition('Denied'), condition('Approved')))
    await session.patch(`${path}/approval`, conditions(condition('Other', { status: 'Unknown' })))
  }),
  life('approval of more than conditions', 'more', async (session, path) => {
    await session.patch(`${path}/approval`, {
      metadata: { labels: { via: 'approval' } },
      spec: { usages: ['server auth'], signerName: 'other.example.com/y' },
      status: { certificate, conditions: [condition('Approved')] },
    })
    await session.send('DELETE', `${path}/approval`)
    await session.send('POST', `${path}/approval`, { body: {} })
  }),
  life('signed', 'signed', async (session, path) => {
    await session.patch(`${path}/status`, { status: { certificate: base64('x') } })
    await session.patch(`${path}/status`, { status: { certificate: request } })
    await session.patch(`${path}/status`, conditions(condition('Approved')))
    await verdict(session, path, 'Approved')
    await session.patch(`${path}/status`, { status: { certificate }, spec: { usages: ['server auth'] } })
    await session.patch(`${path}/status`, { status: { certificate: null } })
    await session.patch(`${path}/status`, { status: { certificate: base64(`\n${certificate}`) } })
    await session.patch(path, { status: { certificate: null }, metadata: { labels: { a: 'b' } } })
    await session.get(path, { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } })
  }),
  life('failed', 'failed', async (session, path) => {
    await session.patch(`${path}/status`, conditions(condition('Failed', { status: 'Unknown' })))
    await session.patch(`${path}/status`, conditions(condition('Failed'), condition('Mine', { status: 'False' })))
    await session.patch(`${path}/status`, conditions(condition('Failed')))
    await session.patch(`${path}/status`, conditions())
  }),
  row(`${kind.apiVersion} ${kind.kind}: who may approve and sign`, async (session) => {
    const path = pathOfNew('guarded')
    await session.create({ ...kind, metadata: wide('guarded'), spec })
    await grant(session, 'requests', { resources: ['certificatesigningrequests/approval'] })
    await grant(session, 'requests-too', { resources: ['certificatesigningrequests/status'] })
    await grant(session, 'other-signer', { resources: ['signers'], resourceNames: ['other.example.com/x'] })
    const headers = { 'impersonate-user': 'signer-$ID' }
    const approve = (): Promise<unknown> =>
      session.patch(`${path}/approval`, conditions(condition('Approved')), 'merge', { headers })
    const sign = (): Promise<unknown> =>
      session.patch(`${path}/status`, { status: { certificate } }, 'merge', { headers })
    await approve()
    await sign()
    await session.patch(`${path}/status`, { metadata: { labels: { a: 'b' } } }, 'merge', { headers })
    await grant(session, 'all-of-a-domain', { resources: ['signers'], resourceNames: ['example.com/*'] })
    await approve()
    await sign()
  }),
]

/** Gives the user of the row another role, and waits until it takes effect. */
async function grant(
  session: Session,
  name: string,
  rule: { resources: string[]; resourceNames?: string[] },
): Promise<void> {
  const verbs = ['get', 'update', 'patch', 'approve', 'sign']
  const rules = [{ apiGroups: ['certificates.k8s.io'], verbs, ...rule }]
  const metadata = { name: `${name}-$ID` }
  const apiGroup = 'rbac.authorization.k8s.io'
  const rbac = { apiVersion: `${apiGroup}/v1`, metadata }
  await session.create({ ...rbac, kind: 'ClusterRole', rules }, { quiet: true })
  const roleRef = { apiGroup, kind: 'ClusterRole', name: metadata.name }
  const subjects = [{ apiGroup, kind: 'User', name: 'signer-$ID' }]
  await session.create({ ...rbac, kind: 'ClusterRoleBinding', roleRef, subjects }, { quiet: true })
  const [resource = '', subresource = ''] = rule.resources[0]?.split('/') ?? []
  const resourceAttributes = {
    ...{ group: 'certificates.k8s.io', verb: 'patch', resource, subresource },
    ...(rule.resourceNames === undefined ? {} : { name: rule.resourceNames[0] }),
  }
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview' }
  const body = { ...review, spec: { user: 'signer-$ID', resourceAttributes } }
  const probe = async (): Promise<boolean> => {
    const response = await session.send('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      body,
      quiet: true,
    })
    return valueAt(response.body, 'status.allowed') === true
  }
  await waitFor(probe, { what: `role ${name} to count`, deadlineMs: 15_000 })
}

export const certificateRows: readonly Row[] = [
  ...kindRows({
    object: { ...kind, metadata: wide('csr'), spec },
    others: [
      ['an invalid request', { spec: { request: 'eA==' } }],
      ['a truncated request', { spec: { request: truncatedRequest } }],
      ['a request signed with another key', { spec: { request: forgedRequest } }],
      ['a certificate for a request', { spec: { request: certificate } }],
      ['a request with an RSA key', { spec: { request: mastersRequest } }],
      [
        'a request for system:masters',
        { spec: { request: mastersRequest, signerName: 'kubernetes.io/kube-apiserver-client' } },
      ],
      ['a request for a group', { spec: { signerName: 'kubernetes.io/kube-apiserver-client' } }],
      ['unknown usages', { spec: { usages: ['x', 'client auth', 'client auth'] } }],
      ['many usages', { spec: { usages: ['digital signature', 'key encipherment', 'server auth', 'any'] } }],
      ['no usages', { spec: { usages: [] } }],
      ['invalid signers', { spec: { signerName: 'x' } }],
      ['a signer without a domain', { spec: { signerName: 'x/y' } }],
      ['a signer with an invalid domain', { spec: { signerName: 'A_.b/y' } }],
      ['a signer with an invalid path', { spec: { signerName: 'example.com/y_' } }],
      ['a signer with two paths', { spec: { signerName: 'example.com/y/z' } }],
      ['a signer that is too long', { spec: { signerName: `${'a.'.repeat(200)}b/${'c.'.repeat(200)}d` } }],
      ['an empty signer', { spec: { signerName: '' } }],
      ['an old signer', { spec: { signerName: 'kubernetes.io/legacy-unknown' } }],
      ['a short life', { spec: { expirationSeconds: 5 } }],
      ['a lifetime of ten minutes', { spec: { expirationSeconds: 600 } }],
      ['another user', { spec: { username: 'x', uid: 'u', groups: ['y'], extra: { a: ['b'] } } }],
      ['a verdict at birth', { status: { certificate, conditions: [condition('Approved')] } }],
    ],
    updates: [
      ['the spec', { spec: { usages: ['server auth'], expirationSeconds: 5 } }],
      ['a label', { metadata: { labels: { a: 'b' } } }],
    ],
  }),
  ...lifeRows,
]
