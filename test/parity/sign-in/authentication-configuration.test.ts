// AuthenticationConfigurations, compared with kube-apiserver: the same are accepted, and the errors have the same texts in
// the same order.
import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { noEgressSelectors, tryConfiguration } from '#virtualapi/auth/sign-in/index.ts'
import { CertificateAuthority } from '#test/support/certificates.ts'
import { ensurePrograms } from '#test/support/programs.ts'
import { randomBelow } from '../cel/generate.ts'
import { damaged, randomConfiguration } from './configurations.ts'

const generated = Number(process.env.KCP_CONFIGURATIONS ?? 1500)
const seed = Number(process.env.KCP_SEED ?? 20_261)

interface Verdict {
  /** It is no such document. */
  readonly decoding?: string
  readonly errors: readonly string[]
}

/** The issuers of ServiceAccount tokens, as the program of test/programs/authentication-config has them. */
const disallowed = ['https://kubernetes.default.svc']

async function askKubernetes(documents: readonly JsonObject[]): Promise<Verdict[]> {
  const program = (await ensurePrograms(['authentication-config']))['authentication-config']
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
  child.stdin.end(documents.map((document) => `${JSON.stringify(document)}\n`).join(''))
  const [code] = (await once(child, 'close')) as [number | null]
  const lines = text.split('\n').filter((line) => line !== '')
  if (code !== 0 || lines.length !== documents.length)
    throw new Error(`the program ended with ${String(code)} after ${lines.length} answers`)
  return lines.map((line) => JSON.parse(line) as Verdict)
}

describe('AuthenticationConfigurations, compared with kube-apiserver', function () {
  this.timeout(600_000)
  const below = randomBelow(seed)
  let documents: JsonObject[]

  before(async () => {
    const [one, other] = await Promise.all(['one', 'other'].map((name) => CertificateAuthority.create(name)))
    const [first = '', second = ''] = [one?.certificate, other?.certificate]
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
    const authorities = ['', first, `${first}${second}`, 'no PEM', `text\n${first}`]
    documents = Array.from({ length: generated }, () => randomConfiguration(below, [...authorities, broken]))
  })

  it('are accepted or refused alike, with the same texts in the same order', async () => {
    const theirs = await askKubernetes(documents)
    const differences = documents.flatMap((document, i) => {
      const { errors } = tryConfiguration(JSON.stringify(document), disallowed)
      const mine = errors.filter((error) => !error.endsWith(noEgressSelectors))
      const upstream = theirs[i]?.errors ?? []
      return JSON.stringify(mine) === JSON.stringify(upstream) ? [] : [{ document, mine, upstream }]
    })
    expect(theirs.filter(({ errors }) => errors.length === 0).length).to.be.greaterThan(generated / 20)
    expect(theirs.filter(({ errors }) => errors.length > 0).length).to.be.greaterThan(generated / 5)
    expect(differences.slice(0, 5), `${differences.length} of ${documents.length} differ`).to.deep.equal([])
  })

  it('are refused alike where a field is unknown or has another type', async () => {
    const broken = documents.map((document) => damaged(document, below))
    const theirs = await askKubernetes(broken)
    const differences = broken.flatMap((document, i) => {
      const isRefused = tryConfiguration(JSON.stringify(document), disallowed).errors.length > 0
      const { decoding, errors = [] } = theirs[i] ?? {}
      return isRefused === (decoding !== undefined || errors.length > 0) ? [] : [{ document, isRefused, decoding }]
    })
    expect(theirs.filter(({ decoding }) => decoding !== undefined).length).to.be.greaterThan(generated / 2)
    expect(differences.slice(0, 5), `${differences.length} of ${broken.length} differ`).to.deep.equal([])
  })

  it('are refused with the same texts for URLs that Go does not parse', async () => {
    const urls = [
      ...[
        'https://a b',
        'https://[::1',
        'https://[::1]:8443/x',
        'https://%zz',
        ' https://a',
        'https://a ',
        'https://a/ b',
      ],
      ...[
        'https://a:x',
        'https://a:99999',
        'https://a/%zz',
        'https://a/%20',
        'ftp://a',
        'https://ü.example',
        'https://a\tb',
      ],
      ...[
        'https://a\\b',
        'https://a/\u0001',
        'https://@a',
        'https://:@a',
        'https://a/?',
        'https://a/#',
        'https://a/../b',
      ],
      ...['https://1.2.3', 'https://a..b', 'https://a_b', 'https://xn--a', 'https://a/;x', 'https:// ', 'https://a<b'],
    ]
    const documents = urls.map((url) => ({
      ...{ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' },
      jwt: [{ issuer: { url, audiences: ['x'] }, claimMappings: { username: { claim: 'sub', prefix: '' } } }],
    }))
    const theirs = await askKubernetes(documents)
    const differences = documents.flatMap((document, i) => {
      const mine = tryConfiguration(JSON.stringify(document), disallowed).errors
      const upstream = theirs[i]?.errors ?? []
      return JSON.stringify(mine) === JSON.stringify(upstream) ? [] : [{ url: urls[i], mine, upstream }]
    })
    expect(differences).to.deep.equal([])
  })
})
