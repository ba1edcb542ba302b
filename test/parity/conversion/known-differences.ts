// Rows about conversion webhooks that differ from a real server, by title, with the reason.
export const knownConversionDifferences: Readonly<Record<string, string>> = {
  'conversion: a redirect': 'redirects are not followed',
}
