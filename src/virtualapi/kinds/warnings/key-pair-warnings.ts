// Warnings about TLS Secrets: certificates and keys that cannot be parsed or do not match. Messages are those of Go's
// crypto/tls.
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'

const secretType = 'kubernetes.io/tls'

/**
 * Warnings about a Secret of type kubernetes.io/tls whose certificate or key is invalid, or whose certificate and key
 * do not match.
 */
export function keyPairWarnings({ type, data }: KubeObject): string[] {
  if (type !== secretType) return []
  const problem = keyPairProblem(textOf(data, 'tls.crt'), textOf(data, 'tls.key'))
  return problem === undefined ? [] : [problem]
}

function textOf(data: unknown, key: string): string {
  const value = isJsonObject(data) ? data[key] : undefined
  return typeof value === 'string' ? Buffer.from(value, 'base64').toString('latin1') : ''
}

function keyPairProblem(certificateText: string, keyText: string): string | undefined {
  const blocks = pemBlocks(certificateText)
  const first = blocks.find(({ type }) => type === 'CERTIFICATE')
  if (first === undefined) return noCertificate(blocks.map(({ type }) => type))
  const keyBlocks = pemBlocks(keyText)
  const at = keyBlocks.findIndex(({ type }) => type === 'PRIVATE KEY' || type.endsWith(' PRIVATE KEY'))
  const keyBlock = keyBlocks[at]
  if (keyBlock === undefined) return noKey(keyBlocks.map(({ type }) => type))
  const certificate = tryCertificate(first.bytes)
  if (certificate === undefined) return 'x509: malformed certificate'
  const known = ['rsa', 'ec', 'ed25519']
  const key = tryKey(keyBlock.bytes)
  if (key === undefined) return 'tls: failed to parse private key'
  const [ofKey = '', ofCertificate = ''] = [key.asymmetricKeyType, certificate.publicKey.asymmetricKeyType]
  if (!known.includes(ofKey)) return 'tls: found unknown private key type in PKCS#8 wrapping'
  if (!known.includes(ofCertificate)) return 'tls: unknown public key algorithm'
  if (ofKey !== ofCertificate) return 'tls: private key type does not match public key type'
  return certificate.checkPrivateKey(key) ? undefined : 'tls: private key does not match public key'
}

function noCertificate(skipped: readonly string[]): string {
  if (skipped.length === 0) return 'tls: failed to find any PEM data in certificate input'
  return skipped.length === 1 && skipped[0]?.endsWith('PRIVATE KEY') === true
    ? 'tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched'
    : `tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [${skipped.join(' ')}]`
}

function noKey(skipped: readonly string[]): string {
  if (skipped.length === 0) return 'tls: failed to find any PEM data in key input'
  return skipped.length === 1 && skipped[0] === 'CERTIFICATE'
    ? 'tls: found a certificate rather than a key in the PEM for the private key'
    : `tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: [${skipped.join(' ')}]`
}

interface Block {
  readonly type: string
  readonly bytes: Buffer
}

const endOfBlock = '\n-----END '
const startOfBlock = '-----BEGIN '

/** The PEM blocks of a text; text that is not a valid block is skipped. */
function pemBlocks(text: string): Block[] {
  const blocks: Block[] = []
  let from = 0
  for (;;) {
    const end = text.indexOf(endOfBlock, from)
    if (end < 0) return blocks
    const inside = text.slice(from, end)
    const start = inside.lastIndexOf(startOfBlock)
    const isBlock = start === 0 || (start > 0 && inside[start - 1] === '\n')
    from = end + endOfBlock.length
    const [lastLine = ''] = text.slice(from, from + maxTypeLength).split('\n', 1)
    const block = isBlock ? tryBlock(inside.slice(start + startOfBlock.length), lastLine) : undefined
    if (block !== undefined) blocks.push(block)
  }
}

/** The most characters of an END line that are read: the longest type name with the dashes after it. */
const maxTypeLength = 1024
const wholeBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * Parses a block from its type to its end. `lastLine`: the END line from the type on. Returns undefined if the two
 * types differ or the content is not base64.
 */
function tryBlock(text: string, lastLine: string): Block | undefined {
  const [typeLine = '', ...lines] = text.split('\n')
  const firstOfBody = lines.findIndex((line) => !line.includes(':'))
  const base64 = (firstOfBody < 0 ? [] : lines.slice(firstOfBody)).join('').replace(/[ \t\r]/g, '')
  const named = typeLine.trimEnd()
  if (!named.endsWith('-----') || lastLine.trimEnd() !== named || !wholeBase64.test(base64)) return undefined
  return { type: named.slice(0, -'-----'.length), bytes: Buffer.from(base64, 'base64') }
}

function tryCertificate(der: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(der)
  } catch {
    return undefined
  }
}

/** Parses a private key. Tries each encoding, whatever the type of the block, as Go does. */
function tryKey(key: Buffer): KeyObject | undefined {
  for (const type of ['pkcs1', 'pkcs8', 'sec1'] as const)
    try {
      return createPrivateKey({ key, format: 'der', type })
    } catch {
      continue
    }
  return undefined
}
