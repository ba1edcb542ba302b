// certificates.k8s.io.
import type { JsonObject } from '../../../src/apimachinery/meta/index.ts'
import type { Row } from '../support/compare-rows.ts'
import { kindRows } from './kind-table.ts'

const csr =
  '-----BEGIN CERTIFICATE REQUEST-----\nMIHzMIGaAgEAMDgxFTATBgNVBAoMDHN5c3RlbTpub2RlczEfMB0GA1UEAwwWc3lz\ndGVtOm5vZGU6bm9kZS0xMC4xLjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABKMl\n-----END CERTIFICATE REQUEST-----\n'
const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })

export const certificateRows: readonly Row[] = [
  ...kindRows({
    object: {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: wide('csr'),
      spec: { request: Buffer.from(csr).toString('base64'), signerName: 'example.com/x', usages: ['client auth'] },
    },
    others: [
      ['a request that is none', { spec: { request: 'eA==' } }],
      ['usages nobody knows', { spec: { usages: ['x', 'client auth', 'client auth'] } }],
      ['no usages', { spec: { usages: [] } }],
      ['signers that are wrong', { spec: { signerName: 'x' } }],
      ['an empty signer', { spec: { signerName: '' } }],
      ['an old signer', { spec: { signerName: 'kubernetes.io/legacy-unknown' } }],
      ['a short life', { spec: { expirationSeconds: 5 } }],
      ['another user', { spec: { username: 'x', groups: ['y'] } }],
    ],
  }),
]
