'use strict'
module.exports = {
  extension: ['ts'],
  spec: ['src/**/*.test.ts'],
  timeout: 20000,
  'forbid-only': true,
}
