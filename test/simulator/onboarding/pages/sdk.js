// Stands in for the platform's JavaScript SDK, as far as embedded signup needs it.
;(() => {
  const { origin } = new URL(document.currentScript.src)
  let appId = ''

  function init(options) {
    appId = options.appId
  }

  function login(callback, { config_id: configId, state = '' }) {
    const query = new URLSearchParams({ app_id: appId, config_id: configId, state, opener: location.origin })
    const dialog = window.open(`${origin}/signup/dialog?${query}`, 'signup', 'popup,width=520,height=680')
    const finish = (code) => {
      removeEventListener('message', take)
      clearInterval(watch)
      callback(code ? { status: 'connected', authResponse: { code } } : { status: 'unknown', authResponse: null })
    }
    const take = (event) => {
      if (event.origin === origin && event.data?.type === 'SIMULATOR_LOGIN') finish(event.data.code)
    }
    // A blocked or closed window answers as a cancelled login.
    const watch = setInterval(() => {
      if (dialog?.closed) finish(null)
    }, 200)
    addEventListener('message', take)
    if (!dialog) finish(null)
  }

  window.FB = { init, login }
  window.fbAsyncInit?.()
})()
