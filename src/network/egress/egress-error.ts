// The reasons of failed calls, in the words of Go's HTTP client, which kube-apiserver's messages quote.

/** A call that got no response. The message may be shown to the tenant: it holds nothing that the other side sent. */
export class EgressError extends Error {
  override readonly name = 'EgressError'
}

const verifyCodes = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
])

/** An error of node:https as an EgressError. `address` is the destination of the connection. */
export function egressError(error: Error, { address, host }: { address: string; host: string }): EgressError {
  if (error instanceof EgressError) return error
  const { code = '' } = error as NodeJS.ErrnoException
  return new EgressError(textOf(code, error, { address, host }), { cause: error })
}

function textOf(code: string, error: Error, { address, host }: { address: string; host: string }): string {
  if (verifyCodes.has(code)) return 'tls: failed to verify certificate: x509: certificate signed by unknown authority'
  switch (code) {
    case 'ECONNREFUSED':
      return `dial tcp ${address}: connect: connection refused`
    case 'EHOSTUNREACH':
      return `dial tcp ${address}: connect: no route to host`
    case 'ENETUNREACH':
      return `dial tcp ${address}: connect: network is unreachable`
    case 'ETIMEDOUT':
      return `dial tcp ${address}: i/o timeout`
    case 'ECONNRESET':
    case 'EPIPE':
      return 'EOF'
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `tls: failed to verify certificate: x509: certificate is not valid for ${host}`
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return 'tls: failed to verify certificate: x509: certificate has expired or is not yet valid'
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
      return 'tls: first record does not look like a TLS handshake'
    default:
      return code.startsWith('HPE_') ? 'net/http: malformed HTTP response' : `connection failed (${code || error.name})`
  }
}
