// Whether this browser shows notifications: the page /account/notifications turns them on.
export const ON = "slipway-notify"; // key in the browser's storage

export const notifies = () => "Notification" in window && localStorage.getItem(ON) === "on"
  && Notification.permission === "granted";
