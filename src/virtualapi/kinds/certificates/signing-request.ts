// PKCS #10 certificate requests: a key, a subject, and a signature that proves possession of the key (RFC 2986). Error
// messages are those of Go.
import { createPublicKey, verify, type KeyObject, type VerifyPublicKeyInput } from 'node:crypto'
import { constants } from 'node:crypto'
import { DerError, derTags, readChildren, readValue, type DerValue } from './der.ts'
import { pemBlocks } from './pem.ts'

/** The parts of a certificate request that the server checks. */
export interface SigningRequest {
  /** O of the subject: the groups of the user, if the certificate authenticates to the API server. */
  readonly organizations: readonly string[]
  /** The reason why the signature is not valid; undefined if it is valid. */
  readonly signatureError: string | undefined
}

/** Parses the first PEM block of a text. Throws an Error with Go's message if it is not a certificate request. */
export function parseSigningRequest(pem: string): SigningRequest {
  const [block] = pemBlocks(pem)
  if (block?.type !== 'CERTIFICATE REQUEST') throw new DerError('PEM block type must be CERTIFICATE REQUEST')
  const whole = readValue(block.bytes)
  if (whole.raw.length < block.bytes.length) throw new DerError('asn1: syntax error: trailing data')
  const [signed, algorithm, signature] = readChildren(whole, derTags.sequence)
  if (signed === undefined || algorithm === undefined || signature?.tag !== derTags.bitString)
    throw new DerError('asn1: syntax error: sequence truncated')
  const [version, subject, keyInfo] = readChildren(signed, derTags.sequence)
  if (version?.tag !== derTags.integer || subject === undefined || keyInfo === undefined)
    throw new DerError('asn1: syntax error: sequence truncated')
  const [objectId] = readChildren(algorithm, derTags.sequence)
  const key = publicKeyOf(keyInfo)
  const claim = { signed: signed.raw, signature: signature.content.subarray(1), key }
  return {
    organizations: organizationsOf(subject),
    signatureError: signatureError(claim, Buffer.from(objectId?.content ?? []).toString('hex'), algorithm),
  }
}

const organizationId = '55040a'

function organizationsOf(subject: DerValue): string[] {
  return readChildren(subject, derTags.sequence)
    .flatMap((names) => readChildren(names, derTags.set))
    .flatMap((name) => {
      const [id, value] = readChildren(name, derTags.sequence)
      const isOrganization = id !== undefined && Buffer.from(id.content).toString('hex') === organizationId
      return isOrganization && value !== undefined ? [Buffer.from(value.content).toString()] : []
    })
}

const curves = new Set(['secp224r1', 'prime256v1', 'secp384r1', 'secp521r1'])

/** The public key; undefined for key types that Go does not support. Throws DerError for a malformed key. */
function publicKeyOf(keyInfo: DerValue): KeyObject | undefined {
  let key: KeyObject
  try {
    key = createPublicKey({ key: Buffer.from(keyInfo.raw), format: 'der', type: 'spki' })
  } catch {
    throw new DerError('x509: malformed public key')
  }
  const { asymmetricKeyType: type, asymmetricKeyDetails: { namedCurve } = {} } = key
  if (type === 'ec' && !curves.has(namedCurve ?? '')) throw new DerError('x509: unsupported elliptic curve')
  return type === 'rsa' || type === 'ec' || type === 'ed25519' ? key : undefined
}

type Family = 'rsa' | 'rsa-pss' | 'ec' | 'ed25519'

/** Signature algorithms by their object id in hex: the family of the key, and the hash. */
const algorithms: Readonly<Record<string, readonly [Family, string | null]>> = {
  '2a864886f70d010105': ['rsa', 'sha1'],
  '2a864886f70d01010b': ['rsa', 'sha256'],
  '2a864886f70d01010c': ['rsa', 'sha384'],
  '2a864886f70d01010d': ['rsa', 'sha512'],
  '2a864886f70d01010a': ['rsa-pss', null],
  '2a8648ce3d0401': ['ec', 'sha1'],
  '2a8648ce3d040302': ['ec', 'sha256'],
  '2a8648ce3d040303': ['ec', 'sha384'],
  '2a8648ce3d040304': ['ec', 'sha512'],
  '2b6570': ['ed25519', null],
}

/** The hashes that RSA-PSS parameters may name, by their encoded object id in hex. */
const pssHashes: readonly (readonly [hex: string, hash: string])[] = [
  ['0609608648016503040201', 'sha256'],
  ['0609608648016503040202', 'sha384'],
  ['0609608648016503040203', 'sha512'],
]

const unimplemented = 'x509: cannot verify signature: algorithm unimplemented'
const shortestRsaBits = 1024

interface Claim {
  readonly signed: Uint8Array
  readonly signature: Uint8Array
  readonly key: KeyObject | undefined
}

function signatureError({ signed, signature, key }: Claim, objectId: string, parameters: DerValue): string | undefined {
  const [family, hash] = algorithms[objectId] ?? []
  if (family === undefined || key === undefined) return unimplemented
  const { asymmetricKeyType, asymmetricKeyDetails: { modulusLength = 0 } = {} } = key
  if (asymmetricKeyType !== family.replace('-pss', '')) return 'x509: signature algorithm and public key do not match'
  if (asymmetricKeyType === 'rsa' && modulusLength < shortestRsaBits)
    return `crypto/rsa: ${modulusLength}-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)`
  const hex = Buffer.from(parameters.content).toString('hex')
  const used = family === 'rsa-pss' ? pssHashes.find(([id]) => hex.includes(id))?.[1] : hash
  if (used === undefined) return unimplemented
  const how: VerifyPublicKeyInput | KeyObject =
    family === 'rsa-pss'
      ? ({ key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST } as never)
      : key
  if (verify(used, signed, how, signature)) return undefined
  if (asymmetricKeyType === 'rsa') return 'crypto/rsa: verification error'
  return `x509: ${asymmetricKeyType === 'ec' ? 'ECDSA' : 'Ed25519'} verification failure`
}
