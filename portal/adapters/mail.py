"""The site's mail server, by SMTP."""

from __future__ import annotations

import contextlib
import logging
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import make_msgid
from pathlib import Path

from portal.config.mail import MailSettings
from portal.core.interfaces.mail import MailServer, MailUnavailable
from portal.core.mail.messages import Mail

log = logging.getLogger(__name__)

SECONDS = 20.0
"""For each answer of the server."""
_FOOT = "You have asked for these messages. To end all of them: "


class SmtpServer(MailServer):
    """MailServer over a connection for each mail."""

    def __init__(self, settings: MailSettings) -> None:
        self._settings = settings

    def send(self, recipient: str, mail: Mail, stop: str) -> None:
        message = self._composed(recipient, mail, stop)
        try:
            with contextlib.closing(self._connected()) as server:
                server.send_message(message)
                # It has the mail: an error from now on must not send it again.
                with contextlib.suppress(OSError, smtplib.SMTPException):
                    server.quit()
        except smtplib.SMTPRecipientsRefused as error:
            codes = [code for code, _ in error.recipients.values()]
            if any(code < 500 for code in codes):
                raise MailUnavailable(f"it refuses {recipient} for now: {codes}") from error
            log.warning("mail to %s is refused: %s", recipient, codes)
        except (OSError, smtplib.SMTPException) as error:  # ssl's errors are OSErrors
            raise MailUnavailable(f"{self._settings.host}: {error}") from error

    def _composed(self, recipient: str, mail: Mail, stop: str) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._settings.sender
        message["To"] = recipient
        message["Subject"] = mail.subject
        message["Message-ID"] = make_msgid(domain=self._settings.sender.rpartition("@")[2])
        message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no automatic answers, please
        message["List-Unsubscribe"] = f"<{stop}>"
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"  # RFC 8058
        message.set_content(f"{mail.text}\n\n-- \n{_FOOT}{stop}\n")
        return message

    def _connected(self) -> smtplib.SMTP:
        settings, context = self._settings, ssl.create_default_context()
        if settings.tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                settings.host, settings.port, timeout=SECONDS, context=context
            )
        else:
            server = smtplib.SMTP(settings.host, settings.port, timeout=SECONDS)
        try:
            if settings.tls == "starttls":
                server.starttls(context=context)
            if settings.user:
                server.login(settings.user, _password(settings.password_file))
        except BaseException:
            server.close()
            raise
        return server


def _password(file: str) -> str:
    return Path(file).read_text(encoding="utf-8").strip() if file else ""
