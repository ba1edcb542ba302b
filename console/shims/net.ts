// node:net for the browser: only the functions that recognize IP addresses, which the validation of schemas calls.

export function isIPv4(text: string): boolean {
  const parts = text.split('.')
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)
}

export function isIPv6(text: string): boolean {
  return text.includes(':') && URL.canParse(`http://[${text}]/`)
}

export function isIP(text: string): 0 | 4 | 6 {
  return isIPv4(text) ? 4 : isIPv6(text) ? 6 : 0
}
