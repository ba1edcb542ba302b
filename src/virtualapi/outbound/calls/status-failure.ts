// The meaning of the HTTP status of a failed call, in the words of Kubernetes' REST client.

const texts: Readonly<Record<number, string>> = {
  400: 'the server rejected our request for an unknown reason',
  401: 'the server has asked for the client to provide credentials',
  403: 'unknown',
  404: 'the server could not find the requested resource',
  405: 'the server does not allow this method on the requested resource',
  406: 'the server was unable to respond with a content type that the client supports',
  409: 'the server reported a conflict',
  415: 'unknown',
  422: 'the server rejected our request due to an error in our request',
  429: 'the server has received too many requests and has asked us to try again later',
  503: 'the server is currently unable to handle the request',
  504: 'the server was unable to return a response in the time allotted, but may still be processing the request',
}

/** The failure that an HTTP status means; undefined for success. */
export function statusFailure(code: number): string | undefined {
  if (code >= 200 && code <= 206) return undefined
  if (texts[code] !== undefined) return texts[code]
  return code >= 500
    ? 'an error on the server ("unknown") has prevented the request from succeeding'
    : `the server responded with the status code ${code} but did not return more information`
}
